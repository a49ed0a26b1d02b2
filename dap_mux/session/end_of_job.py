"""Collects what the ranks of a failed job have left behind, and reports it as one block."""

from __future__ import annotations

import logging
import os
import shlex
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from dap_mux.cluster.job import ExitReasons
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankId
from dap_mux.rank.environ import OUTPUT_BYTES, POST_MORTEM, REPLAY, hold_of
from dap_mux.session.terminal_output import alert, say_more
from dap_mux.system.config import JobOptions, RunOptions
from dap_mux.system.user_files import open_regular

if TYPE_CHECKING:
    from dap_mux.pure.insight.end_of_job import EndOfJob
    from dap_mux.pure.insight.ended import Ended

logger = logging.getLogger("dap_mux.session")

MAX_BYTES: Final = 256 * 1024
"""Of each file; a rank's own files are smaller."""
KEEP_OUTPUT: Final = {OUTPUT_BYTES: str(MAX_BYTES // 2)}
"""For the environment of ranks whose output is wanted at their end."""
NO_RANK: Final = ("", -1)


@dataclass(frozen=True)
class Missing:
    """Ranks without files here: those that never came, and those that called from a host.

    `launcher`: the failure of a program of the job's that is no rank.
    """

    ranks: Sequence[RankId] = ()
    unseen: Mapping[RankId, str] = field(default_factory=dict)
    launcher: Ended | None = None


@dataclass(frozen=True)
class _Seen:
    """A rank's process as the session knows it. `at`: when it ended, inf where nobody saw that."""

    host: str
    pid: int
    at: float
    files: Path
    code: int | None = None
    reason: str = ""


def left_behind(
    rank: RankId, host: str, pid: int, at: float, code: int | None, reason: str, files: Path
) -> Ended:
    """Return what is known of a rank that has ended. `files`: the file in which it said it listens.

    Files of another process are not its own: a launcher's second rank may have had the number.
    """
    # Here, as below, because an editor waits for what its adapter imports.
    from dap_mux.pure.insight.ended import Ended, Written  # noqa: PLC0415
    from dap_mux.rank.black_box import CRASH, END, PRINTED, printed  # noqa: PLC0415

    written = None
    with suppress(ValueError):
        found = msgspec.json.decode(_content(files.with_suffix(END)), type=Written)
        written = found if found.pid == pid else None
    crash = _content(files.with_suffix(CRASH)) if code is None or code < 0 else b""
    ring = _content(files.with_suffix(PRINTED))
    text, tail = crash.decode("utf-8", "replace"), printed(ring) if ring else ""
    return Ended(rank, host, pid, at, code, reason, written, text, tail)


def _status(files: Path) -> int | None:
    """Return the exit code that a launcher in Python has written down (`rank.hook`)."""
    with suppress(ValueError, OverflowError):
        return os.waitstatus_to_exitcode(int(_content(files.with_suffix(".status"))))
    return None


def _content(path: Path) -> bytes:
    """Return the beginning of a file; b"" where it cannot be read."""
    with suppress(OSError), open_regular(path) as file:  # a pipe would keep us waiting
        return file.read(MAX_BYTES)
    return b""


class Endings:
    """How the ranks of a job have ended, as far as they have."""

    def __init__(self, reasons: ExitReasons) -> None:
        self._reasons = reasons
        self._of: dict[RankId, _Seen] = {}
        self._since = time.time()

    def note(
        self, rank: RankId, pid: int, code: int | None, reason: str, failure_file: Path
    ) -> None:
        """A rank of this machine has ended. `code`: None where it is not known yet."""
        self._of[rank] = _Seen(socket.gethostname(), pid, time.time(), failure_file, code, reason)

    def note_elsewhere(self, rank: RankId, host: str, pid: int, failure_file: Path) -> None:
        """A rank of another host has begun; its end is known by its files alone, if by anything."""
        self._of[rank] = _Seen(host, pid, inf, failure_file)

    def _ended(self) -> Iterator[Ended]:
        """Read what each has left behind, and what its launcher has written of it."""
        for rank, seen in self._of.items():
            code, reason = seen.code, seen.reason
            if code is None and (code := _status(seen.files)) is not None:
                # This host's kernel knows nothing of another's processes.
                elsewhere = seen.host != socket.gethostname()
                reason = self._reasons.of(seen.pid, code, by_us=elsewhere)
            at = min(seen.at, time.time())
            yield left_behind(rank, seen.host, seen.pid, at, code, reason, seen.files)

    def of_launcher(self, folder: Path) -> Ended | None:
        """Return the last failure of the job's programs that are no ranks, None for none."""
        from dap_mux.pure.insight.ended import Ended, Written  # noqa: PLC0415
        from dap_mux.rank.black_box import END, EXITED  # noqa: PLC0415

        found = None
        for path in folder.glob(f"*{END}"):
            with suppress(ValueError):
                one = msgspec.json.decode(_content(path), type=Written)
                if one.code is None and one.kind == EXITED:
                    one = replace(one, code=_status(path))
                failed = one.kind != EXITED or one.code
                later = one.time >= max(self._since, found.time if found else 0.0)
                if one.program and failed and later:
                    found = one
        if found is None:
            return None
        return Ended(NO_RANK, socket.gethostname(), found.pid, found.time, written=found)

    def clear(self) -> None:
        """The job starts again."""
        self._of.clear()
        self._since = time.time()

    def write_output(self, path: Path) -> None:
        """Write what each rank has printed, as far as it has kept that."""
        ended = [(one.rank, one.printed) for one in self._ended()]
        path.write_bytes(msgspec.json.encode(ended))

    def report(self, code: int, missing: Missing, options: JobOptions) -> None:
        """Print the block, and write the file of `--end-json`."""
        from dap_mux.pure.insight.end_of_job import end_of_job  # noqa: PLC0415
        from dap_mux.pure.insight.end_of_job_block import lines_of  # noqa: PLC0415

        again = shlex.join(words_of(options))
        ended = [*self._ended()]
        end = end_of_job(
            code, ended, missing.ranks, again, launcher=missing.launcher, unseen=missing.unseen
        )
        if REPLAY in options.variables and end.next:  # it fails again, whenever it is looked at
            end = replace(end, next=f"dap-mux replay --console {again}")
        end = _without_secrets(end)
        first, *rest = lines_of(end)
        alert(first)
        for line in rest:
            say_more(line)
        for line in (first, *rest):
            logger.debug("%s", line)
        if options.end_json is not None:
            _write(options.end_json, end)


def _without_secrets(end: EndOfJob) -> EndOfJob:
    """Redact what ranks have printed and raised; their values are redacted when written down."""
    from dap_mux.rank.redaction import redacted  # noqa: PLC0415

    others = [replace(one, how=redacted(one.how)) for one in end.others]
    first = end.first
    if first is not None:
        first = replace(
            first,
            how=redacted(first.how),
            message=redacted(first.message),
            place=replace(first.place, source=redacted(first.place.source)),
            printed=redacted("\n".join(first.printed)).splitlines(),
        )
    return replace(end, first=first, others=others)


def hold_text(given: str | None) -> str:
    """Return `DAP_MUX_POST_MORTEM` for the job's ranks. Raises UsageError.

    A rank that nobody has debugged is not held: it would keep the job's machines for five minutes.
    """
    text = "debugged" if given is None else given
    try:
        hold_of({POST_MORTEM: text}, None)
    except ValueError:
        raise UsageError(f"--hold={text}: must be a number of seconds, `on` or `off`") from None
    return text


def words_of(options: JobOptions) -> tuple[str, ...]:
    """Return the words after `dap-mux run` that start the job again."""
    if isinstance(options, RunOptions):
        if REPLAY in options.variables:
            return (
                *msgspec.json.decode(options.variables[REPLAY]).values(),
                "--",
                *options.command,
            )
        return ("-n", str(options.world_size), *options.command)
    return ("--", *options.command)


def _write(path: Path, end: EndOfJob) -> None:
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(end), indent=2) + b"\n")
    except OSError as error:
        # No failure of ours: the exit code is the job's.
        alert(f"--end-json {path}: {error.strerror or error}")
