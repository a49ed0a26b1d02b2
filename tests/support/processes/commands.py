"""The installed command as a user runs it: real processes, in a home and a folder of their own.

Whatever a command starts inherits that home's name in its environment, which tells after the
command's end who of its ranks and adapters is left, and who has to be ended with the test.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.system import procfs
from tests.support.clients.conversation import Conversation
from tests.support.processes.waiting import until

LIMIT: Final = 30.0  # s; not a wait
COMMAND: Final = Path(sys.executable).with_name("dap-mux")
_FOREIGN: Final = (
    "COLUMNS",
    "LINES",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
    "MASTER_",
    "DAP_MUX_",
    "DEBUG",
    "XDG_",
    "PYDEVD",
)
Json = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """A command that has ended; `code` is what a shell shows."""

    code: int
    out: str
    err: str


@dataclass
class Command:
    """A running command. A `piped` one has its standard input and output with us."""

    user: User
    process: asyncio.subprocess.Process
    out_path: Path
    err_path: Path
    clients: list[tuple[DapClient, Conversation, bool]] = field(default_factory=list)

    @property
    def out(self) -> str:
        """Its standard output so far."""
        return self.out_path.read_text("utf-8")

    @property
    def err(self) -> str:
        """Its standard error so far."""
        return self.err_path.read_text("utf-8")

    @property
    def session_path(self) -> Path:
        """Where its session file is while it serves."""
        return self.user.sessions / f"{self.process.pid}.json"

    async def session(self, within: float = LIMIT) -> Json:
        """Wait until it serves; return what its session file says."""

        def serves() -> bool:
            assert self.process.returncode is None, f"{self.process.returncode}: {self.err}"
            return self.session_path.exists()

        await until(serves, within=within, what="a session file")
        session: Json = json.loads(self.session_path.read_text("utf-8"))
        return session

    async def says(self, words: str) -> None:
        """Wait until it has said these words to the user."""
        await until(lambda: words in self.err, within=LIMIT, what=f"{words!r} in {self.err!r}")

    async def client(
        self, name: str = "client", *, all_answered: bool = True, within: float = LIMIT
    ) -> DapClient:
        """Connect to its port, every message checked; `all_answered=False`: it will be killed."""
        session = await self.session(within)
        conversation = Conversation(name)
        client = await DapClient.connect(session["host"], session["port"], tap=conversation.tap)
        self.clients.append((client, conversation, all_answered))
        return client

    def editor(self, *, all_answered: bool = True) -> DapClient:
        """Speak over its standard streams, every message checked; see `client`."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        conversation = Conversation("editor")
        client = DapClient(stdout, stdin, tap=conversation.tap)
        self.clients.append((client, conversation, all_answered))
        return client

    async def ends(self, *, within: float = LIMIT) -> Done:
        """Wait for its end."""
        try:
            code = await asyncio.wait_for(self.process.wait(), within)
        except asyncio.TimeoutError:
            raise AssertionError(f"still runs after {within} s: {self.err}") from None
        return Done(code, self.out, self.err)

    async def close(self) -> None:
        """End it, and hold it to what it owes its clients."""
        for client, _, _ in self.clients:
            await client.close()
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        for _, conversation, all_answered in self.clients:
            conversation.finish(expect_all_answered=all_answered)


class User:
    """Somebody with a home, a folder and sessions of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self._runtime = folder / "runtime"
        self._runtime.mkdir()
        self.command = COMMAND
        self.commands: list[Command] = []
        self.others: list[asyncio.subprocess.Process] = []
        own = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(self._runtime)}
        self.environ = {**clean_environment(), **own, "DAP_MUX_LISTEN": "127.0.0.1:0"}

    @property
    def sessions(self) -> Path:
        """Where the session files are."""
        return self._runtime / "dap-mux"

    def script(self, text: str, name: str = "train.py") -> str:
        """Write a program; return its path."""
        path = self.folder / name
        path.write_text(text, "utf-8")
        return str(path)

    async def start(
        self,
        *words: str,
        piped: bool = False,
        sockets: tuple[int, int] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Command:
        """Start `dap-mux WORDS`; `sockets`: the descriptors of its standard input and output."""
        name = f"command-{len(self.commands)}"
        out, err = (self.folder.parent / f"{name}.{end}" for end in ("out", "err"))
        out.touch()
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = await asyncio.create_subprocess_exec(
                str(self.command),
                *words,
                cwd=self.folder,
                env={**self.environ, **(env or {})},
                stdin=sockets[0] if sockets else pipe if piped else nothing,
                stdout=sockets[1] if sockets else pipe if piped else out_file,
                stderr=err_file,
            )
        command = Command(self, process, out, err)
        self.commands.append(command)
        return command

    async def does(self, *words: str, env: Mapping[str, str] | None = None) -> Done:
        """Run `dap-mux WORDS` to its end."""
        return await (await self.start(*words, env=env)).ends()

    def processes(self) -> set[int]:
        """Every process that one of our commands started, itself or through others."""
        here = str(self._runtime)
        return {pid for pid in procfs.pids() if procfs.environ(pid).get("XDG_RUNTIME_DIR") == here}

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process of ours."""
        assert pid in self.processes(), f"{pid} is not ours"
        os.kill(pid, number)

    async def nothing_is_left(self, *, within: float = LIMIT) -> None:
        """Wait until all of them are gone: commands, ranks, debugpy's adapters."""
        await until(lambda: not self.processes(), within=within, what="nothing is left")

    def _kill_all(self) -> bool:
        """Whether there was anybody: who was just being started is there at the next look."""
        found = self.processes()
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(found)

    async def close(self) -> None:
        """End everything, adapters too; pytest shows what they said where the test has failed."""
        try:
            for command in self.commands:
                print(f"{command.err_path.name}: {command.process.returncode}\n{command.err}")
                await command.close()
        finally:
            await until(lambda: not self._kill_all(), within=LIMIT, what="nothing is left")
            for process in self.others:
                await process.wait()


@pytest.fixture
async def user(tmp_path: Path) -> AsyncIterator[User]:
    """A user, whose processes all end with the test."""
    somebody = User(tmp_path)
    yield somebody
    await somebody.close()


def line_of(path: str, mark: str) -> int:
    """The number of the one line of a script that ends in `# mark`."""
    lines = Path(path).read_text("utf-8").splitlines()
    (found,) = (n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))
    return found


async def threads(client: DapClient, count: int) -> dict[str, int]:
    """Ask for the threads until there are `count`; their ids by name."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIMIT
    while True:
        rows = (await client.request("threads", timeout=LIMIT))["threads"]
        if len(rows) == count:
            return {row["name"]: row["id"] for row in rows}
        assert loop.time() < deadline, f"not {count} threads: {rows}"
        await asyncio.sleep(0.02)


async def listed(
    client: DapClient,
    key: str,
    *values: object,
    within: float = LIMIT,
    rank: int | None = None,
) -> list[Json]:
    """Ask `list` until the ranks have these values under `key`, in order; return its entries.

    `rank`: only this one is looked at.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        entries: list[Json] = (await client.request("list", timeout=LIMIT))["ranks"]
        entries = [entry for entry in entries if rank in (None, entry["rank"])]
        if [entry[key] for entry in entries] == [*values]:
            return entries
        assert loop.time() < deadline, f"{key} is not {values}: {entries}"
        await asyncio.sleep(0.02)


async def quiet(client: DapClient, breakpoints: dict[str, list[Json]]) -> None:
    """Wait until no rank evaluates anything for us: debugpy's adapter dies of a cut that crosses
    an answer (docs/faults.md).

    With new breakpoints (those of each path) a rank is asked about their file, if it has not been
    since it is back; it evaluates in order, so it has told that once it answers what we ask then.
    """
    for path, lines in breakpoints.items():
        wanted = {"source": {"path": path}, "breakpoints": lines}
        await client.request("setBreakpoints", wanted, timeout=LIMIT)
    cast = {"ranks": "all", "command": "6 * 7"}
    answers = (await client.request("cast", cast, timeout=LIMIT))["results"]
    assert {each["value"] for each in answers} == {"42"}


def bodies(client: DapClient, event: str) -> list[Json]:
    """The bodies of all events of this name so far."""
    return [each.get("body", {}) for each in client.events if each["event"] == event]


def clean_environment() -> dict[str, str]:
    """Our own environment, without what another job or a debugger has put there."""
    return {name: text for name, text in os.environ.items() if not name.startswith(_FOREIGN)}
