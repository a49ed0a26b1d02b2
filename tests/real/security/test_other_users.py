"""Another user of this machine, who hangs up before anybody has looked who that was.

Whoever writes everything in one piece and closes leaves the kernel with a connection that it lists
as root's, of no process. A session of root must not take it for root.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.pure.protocol.messages import encode_frame
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, Command, User, line_of, listed
from tests.support.processes.netcat import PROMPT, Netcat, served
from tests.support.processes.run_command import COUNT, start
from tests.support.security import INITIALIZE, attach

pytestmark = [
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user"),
]
BURSTS: Final = 40
CONNECTIONS: Final = 90  # in each of them
AS_NOBODY: Final = """
import encodings.idna, os, socket, sys
os.setgroups([])
os.setuid(65534)
said = sys.stdin.buffer.read()
port, bursts, connections = map(int, sys.argv[1:])
for burst in range(bursts):
    for number in range(connections):
        with socket.create_connection(("127.0.0.1", port)) as mine:
            try:
                mine.sendall(said)
                while number == connections - 1 and mine.recv(100_000):
                    pass  # the session has seen all of this burst once it hangs up here
            except ConnectionError:
                pass  # it has hung up already
"""


@asynccontextmanager
async def busy_processor() -> AsyncIterator[None]:
    """Somebody else's work, which delays each look at who has come."""
    spinning = await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass")
    try:
        yield
    finally:
        spinning.kill()
        await spinning.wait()


async def burst_as_nobody(port: int, said: bytes) -> None:
    """Say this again and again as another user, hanging up at once each time."""
    words = ("-c", AS_NOBODY, str(port), str(BURSTS), str(CONNECTIONS))
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=pipe)
    await child.communicate(said)
    assert child.returncode == 0


async def stopped_job(user: User) -> tuple[Command, DapClient]:
    """A job of one rank, which stands at a breakpoint and so evaluates what it is asked."""
    path = user.script(COUNT)
    run = await start(user, path, n=1)
    editor = await joined(run, {path: [line_of(path, "loss")]}, name="editor")
    await listed(editor, "state", "stopped")
    return run, editor


def leaving(mark: Path) -> str:
    """A statement of Python that is known by the file it leaves."""
    return f"open({str(mark)!r}, 'w').close()"


@pytest.mark.timeout(300)
async def test_the_editors_port(user: User) -> None:
    run, editor = await stopped_job(user)
    mark = user.folder / "mark"
    cast = (
        b'{"seq":3,"type":"request","command":"cast","arguments":{"ranks":"all","command":"!%s"}}'
    )
    said = [INITIALIZE, attach(""), cast % leaving(mark).encode()]
    async with busy_processor():
        await burst_as_nobody((await run.session())["port"], b"".join(map(encode_frame, said)))
        # It comes behind all of theirs, and so does what it asks of the rank.
        last = await joined(run, name="last")
        await last.request("cast", {"ranks": "all", "command": "6 * 7"}, timeout=LIMIT)
    assert not mark.exists(), "run by another user's word"
    await last.disconnect()
    await editor.disconnect()
    assert (await run.ends()).code == 0


@pytest.mark.timeout(300)
async def test_consoles(user: User) -> None:
    run, editor = await stopped_job(user)
    command, port = await served(user)
    mark = user.folder / "mark"
    async with busy_processor():
        await burst_as_nobody(port, f"cast all !{leaving(mark)}\n".encode())
        last = await Netcat.connect(port)
        await last.until(PROMPT)
        await last.does("cast all 6 * 7")
        await last.close()
    assert not mark.exists(), "run by another user's word"
    await editor.disconnect()
    assert (await run.ends()).code == 0
    assert "Traceback" not in (await command.ends()).err
