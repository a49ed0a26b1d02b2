"""What the doctor looks at: ranks that run until they are told, tunnels, and who has left them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from dap_mux.client import DapClient
from dap_mux.system.procfs import CLOSE_WAIT, ESTABLISHED, tcp_sockets
from tests.real.driving import let_end
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.proc_net import listens as is_taken
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until

Connect = Callable[..., Awaitable[DapClient]]
TUNNEL: Final = Path(__file__).parent / "scripts" / "socat"
ATTACH: Final = {"subProcess": False}


@asynccontextmanager
async def program(*words: str, listens: int) -> AsyncIterator[int]:
    """A program of ours until the block is left; yields its pid once it listens on a port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await until(lambda: is_taken(listens), within=LIMIT, what=f"{words[0]} listens")
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def tunnel(*ways: tuple[int, int]) -> AsyncIterator[None]:
    """A tunnel for each pair: from a port, to a port."""
    if not ways:
        yield
        return
    (here, there), *rest = ways
    async with program(str(TUNNEL), str(here), str(there), listens=here), tunnel(*rest):
        yield


async def left(*ranks: Rank) -> None:
    """Wait until nobody is connected to them any more, and their adapters know it.

    Who leaves is answered first: an adapter may still have to notice the end of the connection.
    """
    ports = {rank.port for rank in ranks}

    def nobody() -> bool:
        rows = (one for one in tcp_sockets() if one.port in ports)
        return not any(one.state in (ESTABLISHED, CLOSE_WAIT) for one in rows)

    await until(nobody, within=LIMIT, what="nobody is connected")


async def attach_and_finish(connect: Connect, ranks: list[Rank], done: Path) -> None:
    """The doctor has harmed nobody: each is attached, left, and runs to its own end."""
    await left(*ranks)
    for rank in ranks:
        client = await connect(rank.port, strict=False)
        await client.handshake(ATTACH, timeout=LIMIT)
        await client.disconnect(timeout=LIMIT)
    let_end(done)
    for rank in ranks:
        assert await rank.ended(within=LIMIT) == 0, rank.output
        assert "counted" in rank.output


def write_launch(user: User, *configurations: dict[str, Any]) -> None:
    """A launch.json as VS Code makes it."""
    (user.folder / ".vscode").mkdir()
    body = json.dumps({"version": "0.2.0", "configurations": list(configurations)}, indent=4)
    text = "// Use IntelliSense to learn about it: https://go.microsoft.com\n" + body
    (user.folder / ".vscode/launch.json").write_text(text.replace("]", ",]"), "utf-8")


async def reason(client: DapClient, words: str) -> None:
    """Wait until a session says this of its one rank, while it tries again."""
    said = ""
    for _ in range(1000):
        (entry,) = (await client.request("list", timeout=LIMIT))["ranks"]
        said = entry["reason"] or ""
        if words in said:
            return
        await asyncio.sleep(0.03)
    raise AssertionError(said)
