"""`dap-mux console --serve`: plain consoles for `nc`, and who is not let in."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.commands import LIMIT, Command, User, line_of, listed, user
from tests.support.run_command import COUNT, LAUNCH, start
from tests.support.security import bytes_as_nobody
from tests.support.waiting import until

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROMPT = b"dap-mux> "


class Netcat:
    """What `nc` is: bytes there, bytes back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> Netcat:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def until(self, end: bytes) -> str:
        """Read up to these bytes."""
        return (await asyncio.wait_for(self._reader.readuntil(end), LIMIT)).decode()

    async def does(self, line: str, end: bytes = PROMPT) -> str:
        """Type a line; return what comes before the next prompt."""
        self._writer.write(f"{line}\n".encode())
        return await self.until(end)

    async def rest(self) -> str:
        """Read to the end of the connection."""
        return (await asyncio.wait_for(self._reader.read(), LIMIT)).decode()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):  # the other end was faster, and left words unread
            await self._writer.wait_closed()


async def served(user: User) -> tuple[Command, int]:
    """Serve consoles on a free port."""
    command = await user.start("console", "--serve", "0")
    await command.says("; try `nc ")
    await until(lambda: command.err.endswith("\n"), within=LIMIT, what="the whole line")
    found = re.search(r"consoles on 127\.0\.0\.1:(\d+); try `nc 127\.0\.0\.1 \1`", command.err)
    assert found is not None
    return command, int(found[1])


async def test_two_people_with_nc(user: User) -> None:
    path = user.script(COUNT)
    loss = line_of(path, "loss")
    run = await start(user, path, n=2)
    editor = await run.client("editor")
    await editor.handshake(LAUNCH, breakpoints={path: [loss]}, timeout=LIMIT)
    await listed(editor, "line", loss, loss)
    command, port = await served(user)

    one, two = await Netcat.connect(port), await Netcat.connect(port)
    assert "DAP-MUX" in await one.until(PROMPT)
    await two.until(PROMPT)
    assert "| job          |      1 |" in await one.does("list\r")
    attached = await two.does("attach 1", b"(Pdb 1) ")
    assert f"{path}({loss})step()" in attached
    assert "\n10\n" in "\n" + await two.does("10 * rank", b"(Pdb 1) ")
    assert "return loss" in await two.does("n", b"(Pdb 1) ")
    said = await one.until(f"rank 1 stopped at train.py:{loss + 1} (step)\n".encode())
    assert said.startswith("\n"), "not behind the prompt"
    assert await one.until(PROMPT) == "dap-mux> ", "which is shown again"

    await two.close()
    assert "left; other debuggers" in await one.does("quit", b"resumed\n")
    assert await one.rest() == ""
    await one.close()
    await listed(editor, "state", "stopped", "stopped")
    await editor.disconnect()
    assert (await run.ends()).code == 0
    assert (await command.ends()).code == 0, "no session, nothing to serve"


@contextmanager
def held(command: Command) -> Iterator[None]:
    """The command does nothing meanwhile: what comes is there when it looks."""
    pid = command.process.pid
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)  # it has
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(
    "hello",
    [
        b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\ncontinue\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\n",
    ],
)
async def test_s6_a_browser_is_no_person(user: User, hello: bytes) -> None:
    run = await start(user, user.script(COUNT), n=1)
    await run.session()
    command, port = await served(user)
    with held(command):  # else a person has come who says nothing, if our words take 0.2 s
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(hello)
    assert await asyncio.wait_for(reader.read(), LIMIT) == b"", "not a word"
    writer.close()
    shown = await user.does("list")
    assert "waiting" in shown.out, "nobody has joined: the rank still waits"
    command.process.terminate()
    await command.ends()


async def test_s5_another_user_is_not_let_in(user: User) -> None:
    run = await start(user, user.script(COUNT), n=1)
    await run.session()
    command, port = await served(user)
    assert await bytes_as_nobody(port, b"list\n") == b"", "not a word"
    assert "waiting" in (await user.does("list")).out, "nobody has joined"
    await command.says("refused a console to another user")
    command.process.terminate()
    await command.ends()


async def test_a_line_longer_than_any_command_ends_only_its_own_connection(user: User) -> None:
    run = await start(user, user.script(COUNT), "--epochs", "1", n=1)
    await run.session()
    editor = await run.client("editor")
    path = str(user.folder / "train.py")
    await editor.handshake(LAUNCH, breakpoints={path: [line_of(path, "loss")]}, timeout=LIMIT)
    await listed(editor, "state", "stopped")
    command, port = await served(user)
    long, other = await Netcat.connect(port), await Netcat.connect(port)
    await other.until(PROMPT)
    await long.until(PROMPT)
    assert "left;" in await long.does("x" * 200_000, b"resumed\n")
    assert "1 stopped" in await other.does("list")
    await other.close()
    await long.close()
    await editor.disconnect()
    assert (await run.ends()).code == 0
    assert (await command.ends()).code == 0
