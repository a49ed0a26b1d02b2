"""What a person at the terminal reads: the log, and what the ranks print."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import anyio

from dap_mux.cluster.rank_process import RankProcess
from dap_mux.printable import one_line, printable

LOG_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
POLL_INTERVAL_S: Final = 0.1  # s between two looks at the ranks' log files
READY_MARK: Final = " listens for a debugger on "  # the rank's own word, for whom started it: us
MAX_READ: Final = 256 * 1024


def say(text: str) -> None:
    """Tell the user one thing, beside the job's own output; nobody may be left to read it."""
    with contextlib.suppress(OSError):
        print(f"dap-mux: {printable(text)}", file=sys.stderr, flush=True)  # noqa: T201


def set_up_log(verbosity: int, log_dir: Path | None) -> None:
    """Log to standard error by `-v`, and all of it to `dap-mux.log` where a folder is given.

    Loggers are named by component and rank: `dap_mux.rank.3`, `dap_mux.client`. The event loop's
    own words go the same way.
    """
    stream = _StandardError()
    stream.setLevel(LOG_LEVELS[min(verbosity, 2)])
    stream.setFormatter(SafeFormatter("%(name)s: %(message)s"))
    handlers: list[logging.Handler] = [stream]
    if log_dir is not None:
        log_dir.mkdir(parents=True, exist_ok=True)
        file = logging.FileHandler(log_dir / "dap-mux.log", encoding="utf-8")
        file.setFormatter(SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        handlers.append(file)
    for name, level in (("dap_mux", logging.DEBUG), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.propagate = False
        logger.handlers = handlers


if TYPE_CHECKING:
    _TextHandler = logging.StreamHandler[TextIO]
else:
    _TextHandler = logging.StreamHandler  # takes a type from Python 3.11 on


class _StandardError(_TextHandler):
    """Standard error as it is now: a console's prompt may have put itself before it."""

    @property
    def stream(self) -> TextIO:
        """Where it goes."""
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        """The base class wants to keep one."""


class SafeFormatter(logging.Formatter):
    """Ranks' words are in some messages: none steers a terminal or passes for a line of ours."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (logging's own name)
        """Format the message; a traceback of ours behind it keeps its lines."""
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Format a traceback, whose last line may quote a rank."""
        return printable(super().formatException(ei))


class Echo:
    """Follows the ranks' log files and repeats their lines on standard output.

    The ranks write to files, not to us: so nothing breaks in them when we are gone.
    """

    def __init__(self, ranks: Sequence[RankProcess], out: TextIO | None = None) -> None:
        self._out = out
        self._tails = [_Tail(rank.log_path, self._label(rank, len(ranks))) for rank in ranks]

    @classmethod
    def of_file(cls, path: Path) -> Echo:
        """Return one that repeats what a launcher writes to this file, all its ranks' lines."""
        echo = cls(())
        echo._tails.append(_Tail(path, ""))
        return echo

    @staticmethod
    def _label(rank: RankProcess, count: int) -> str:
        return "" if count == 1 else f"[{rank.rank}] "

    async def follow(self) -> None:
        """Repeat what comes, until cancelled."""
        while True:
            self.catch_up()
            await anyio.sleep(POLL_INTERVAL_S)

    def catch_up(self, *, final: bool = False) -> None:
        """Repeat what has come since the last time; `final`: unfinished lines too."""
        for tail in self._tails:
            for line in tail.lines(final=final):
                if READY_MARK not in line:
                    print(line, file=self._out or sys.stdout, flush=True)


class _Tail:
    """The new lines of one growing file."""

    def __init__(self, path: Path, label: str) -> None:
        self._path = path
        self._label = label
        self._at = 0
        self._rest = b""

    def lines(self, *, final: bool) -> list[str]:
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read(None if final else MAX_READ)
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        if final and self._rest:
            whole.append(self._rest)
            self._rest = b""
        return [self._label + printable(line.decode("utf-8", "replace")) for line in whole]
