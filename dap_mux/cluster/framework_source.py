"""The ranks of an engine that knows them itself (Dask, Ray), reported by a process of its Python.

See `dap_mux.rank.frameworks`: that process runs as long as the session does, prints a line whenever
the ranks have changed, and takes everything of ours out of the cluster once its stdin has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
from asyncio.subprocess import Process
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from shutil import which
from typing import Any, Final

import anyio

from dap_mux.cluster.endpoints import NamedRanks
from dap_mux.cluster.records import RankRecord, record_of
from dap_mux.cluster.source import Notify, OnReached, SourceSpec, reach_directly
from dap_mux.cluster.ssh import reach_by_ssh
from dap_mux.cluster.tunnel import lines_of, next_line, run_command, running_child
from dap_mux.pure.endpoint import is_loopback
from dap_mux.pure.errors import DapMuxError, NothingToConnect, Refused, UsageError
from dap_mux.pure.printable import one_line
from dap_mux.rank import frameworks
from dap_mux.system.programs import debugpy_folder
from dap_mux.system.user_files import parse_json, read_regular, startable

FIRST_REPORT_TIMEOUT_S: Final = 60.0  # importing an engine and connecting can take half of that
LEAVE_TIMEOUT_S: Final = 5.0  # to take what is ours out of the cluster
LAST_WORDS_TIMEOUT_S: Final = 2.0  # a child of it may keep its error output open
NO_ADDRESS: Final = {"host": "127.0.0.1", "port": 1}  # of a rank that listens nowhere yet
MAX_RANKS: Final = 65536
MAX_LAST_LINES: Final = 3  # of its error output, kept to explain its end
MAX_TEXT: Final = 1000  # characters of a message
ENGINES: Final = {"dask": "distributed", "ray": "ray"}
"""The module by which a Python of each engine is known."""


class FrameworkSource:
    """A `ReportingSource`: the ranks that the engine named by the endpoint's scheme knows."""

    lingers = inf  # workers restart, and others may come
    swallows_exceptions = True

    def __init__(self, word: SourceSpec) -> None:
        self._word = word
        self._process: Process | None = None
        self._running = AsyncExitStack()
        self._records: list[RankRecord] = []
        self._notices: list[str] = []
        self._codes: dict[tuple[str, int], int] = {}
        self._errors: asyncio.Task[None] | None = None
        self._last: deque[str] = deque(maxlen=MAX_LAST_LINES)
        self._stopped = False

    async def discover(self) -> Sequence[RankRecord]:
        """Start the reporting process; return the ranks of its first report."""
        try:
            await self._start()
            with anyio.fail_after(FIRST_REPORT_TIMEOUT_S):
                while not await self._read_report():
                    pass
        except TimeoutError:
            await self._close()
            raise NothingToConnect(
                f"{self._word}: no response within {FIRST_REPORT_TIMEOUT_S:g} s"
            ) from None
        except BaseException:
            await self._close()
            raise
        return self._records

    async def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield the ranks after each report, and none once the cluster has ended."""
        try:
            if self._process is None:
                yield await self.discover()
            while self._process is not None:
                ended = await self._read_report() is None
                yield self._records
                if ended:
                    return
        finally:
            await self._close()

    def reach(
        self, records: Sequence[RankRecord], changed: OnReached, tell: Notify
    ) -> AbstractAsyncContextManager[None]:
        """Reach those of this machine directly, others by ssh: ranks listen on loopback."""
        if _is_here(records[0].host):
            return reach_directly(records, changed, tell)
        return reach_by_ssh(records[0].host, records, changed, tell)

    def notices(self) -> Sequence[str]:
        """Return new messages for the user."""
        notices, self._notices = self._notices, []
        return notices

    def exit_code(self, record: RankRecord) -> int | None:
        """Return the exit code of a rank that has gone, if it was reported."""
        return self._codes.get((record.group, record.rank or 0))

    def paused(self, *, stopped: bool) -> None:
        """Tell the reporting process whether any rank is stopped (`PauseAwareSource`)."""
        self._stopped = stopped
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(json.dumps({"stopped": stopped}).encode() + b"\n")

    async def _start(self) -> None:
        scheme, endpoint = self._word.scheme, self._word.rest
        python = await python_with(ENGINES[scheme], self._word.python)
        own = {"endpoint": endpoint, "debugpy": debugpy_folder()}
        options = json.dumps({**self._word.options, **own})
        words = [python, "-u", str(Path(frameworks.__file__).parent), scheme, options]
        child = running_child(words, with_input=True)
        self._process = await self._running.enter_async_context(child)
        self._errors = asyncio.get_running_loop().create_task(self._read_errors(self._process))
        if self._stopped:
            self.paused(stopped=True)

    async def _read_errors(self, process: Process) -> None:
        """Read its error output until it is closed."""
        assert process.stderr is not None
        async for line in lines_of(process.stderr):
            if line.strip():
                self._last.append(one_line(line.strip())[:MAX_TEXT])

    async def _close(self) -> None:
        """Let the process take what is ours out of the cluster, and end it."""
        process, self._process = self._process, None
        with anyio.CancelScope(shield=True):
            if process is not None and process.stdin is not None:
                process.stdin.close()
                with anyio.move_on_after(LEAVE_TIMEOUT_S):
                    await process.wait()
            if self._errors is not None:
                self._errors.cancel()
                await asyncio.wait([self._errors])
            await self._running.aclose()

    async def _read_report(self) -> bool | None:
        """Read a line: whether there is anything new to tell; None at the cluster's end.

        Raises `DapMuxError` where the process reports a failure or has ended.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        line = await next_line(self._process.stdout)
        if line is None:
            if self._errors is not None:  # its last words may be on their way
                await asyncio.wait([self._errors], timeout=LAST_WORDS_TIMEOUT_S)
            why = f": {' / '.join(self._last)}" if self._last else ""
            raise DapMuxError(f"the process that reports its ranks has ended{why}")
        try:
            report = json.loads(line)
            return self._take(report)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DapMuxError(f"malformed report {one_line(line)[:MAX_TEXT]!r}") from error

    def _take(self, report: Mapping[str, Any]) -> bool | None:
        if "failed" in report:
            texts = [str(report[key])[:MAX_TEXT] for key in ("failed", "help") if report.get(key)]
            raise NothingToConnect(f"{self._word}: {'; '.join(texts)}")
        if "end" in report:
            self._records = []
            return None
        if "exited" in report:
            gone = report["exited"]
            self._codes[str(gone["group"]), int(gone["rank"])] = int(gone["code"])
            return False
        if "notice" in report:
            self._notices.append(one_line(str(report["notice"]))[:MAX_TEXT])
            return False
        self._records = [_record(entry) for entry in report["ranks"][:MAX_RANKS]]
        return True


def _record(entry: Mapping[str, Any]) -> RankRecord:
    """Return a reported rank. Raises `UsageError`, TypeError."""
    waits = str(entry.get("waits") or "")
    given = {name: value for name, value in entry.items() if value is not None}
    record = record_of({**NO_ADDRESS, **given} if waits else given, "a rank")
    return replace(
        record,
        incarnation=str(entry.get("incarnation") or ""),
        waits=one_line(waits)[:MAX_TEXT],
        ready=entry.get("ready", True) is True,
    )


def _is_here(host: str) -> bool:
    """Whether `host` is an address of this machine."""
    if is_loopback(host):
        return True
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        try:
            tried.bind((host.strip("[]"), 0))
        except (OSError, UnicodeError):
            return False
    return True


# The Python of an engine's job: the one that has this engine.

NAMES: Final = ("python", "python3")


async def python_with(module: str, wanted: Path | None = None) -> str:
    """Return the Python that imports `module`: `wanted`, that of VIRTUAL_ENV, one in PATH, or ours.

    Raises `UsageError` if there is none.
    """
    if wanted:
        if not await _has(str(wanted), module):
            raise UsageError(f"{wanted} has no {module}; give the job's Python by --python")
        return str(wanted)
    tried = []
    for python in dict.fromkeys(_candidates()):
        if await _has(python, module):
            return python
        tried.append(python)
    where = f" (tried {', '.join(tried)})" if tried else ""
    raise UsageError(f"no Python with {module} found{where}; give the job's Python by --python")


def _candidates() -> Iterator[str]:
    environment = os.environ.get("VIRTUAL_ENV")
    if environment:
        yield str(Path(environment) / "bin" / "python")
    for folder in os.get_exec_path():
        for name in NAMES:
            found = which(name, path=folder)
            if found:
                yield found
    yield sys.executable


async def _has(python: str, module: str) -> bool:
    """Whether this Python finds the module; it is not imported, as that may take seconds."""
    code = (  # not found in the working directory
        "import importlib.util as u, sys; del sys.path[0]; "
        f"sys.exit(u.find_spec({module!r}) is None)"
    )
    return (await run_command([python, "-c", code])).code == 0


# The clusters that a launched job meets; its driver names each in the rendezvous folder.

logger = logging.getLogger("dap_mux.session")
POLL_INTERVAL_S: Final = 0.1


@dataclass(frozen=True)
class MetCluster:
    """A cluster whose driver waits for the session to join it."""

    named: NamedRanks
    joined: Path
    python: Path

    def check_python(self) -> None:
        """Raise Refused where the driver's Python may be another user's program."""
        if startable(self.python) is None:
            raise Refused(
                f"the driver's Python {self.python} is not started: it, or a folder above it, "
                "belongs to another user or is writable by everybody"
            )

    def let_driver_go_on(self) -> None:
        """The driver waits no longer."""
        with suppress(OSError):  # the job has ended, and its folder is gone
            self.joined.touch()


async def met_clusters(rendezvous: Path) -> AsyncIterator[MetCluster]:
    """Yield each cluster as its driver names it."""
    seen: set[Path] = set()
    while True:
        for path in _named(rendezvous) - seen:
            seen.add(path)
            try:
                found = _read(path)
            except (OSError, ValueError, UsageError) as error:  # a program of the job wrote it
                logger.warning("no cluster is named in %s: %s", path.name, error)
                continue
            yield found
        await anyio.sleep(POLL_INTERVAL_S)


def _named(rendezvous: Path) -> set[Path]:
    return set(rendezvous.glob("*.cluster"))


def _read(path: Path) -> MetCluster:
    entry = parse_json(read_regular(path))
    if not isinstance(entry, dict) or not isinstance(entry.get("endpoint"), str):
        raise UsageError("it is not an object with an endpoint")
    joined = path.with_suffix(".joined")
    scheme, _, address = str(entry.get("endpoint")).partition(":")
    options = {"driver": entry.get("pid"), "joined": str(joined)}
    python = Path(str(entry.get("python")))
    word = SourceSpec(scheme, address, python, options)
    return MetCluster(NamedRanks(word=str(word), source=FrameworkSource(word)), joined, python)
