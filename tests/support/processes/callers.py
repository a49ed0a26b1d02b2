"""Ranks that call the session, as their users start them: `DAP_MUX_DIAL` and the in-rank agent."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from dap_mux.client import DapClient
from dap_mux.shell.reverse_connections import proof
from tests.support.processes.commands import LIMIT, Command, User
from tests.support.processes.ranks import HOST, Rank

TOKEN = "t" * 43
TOLD = re.compile(r"(DAP_MUX_DIAL)=(\S+) (DAP_MUX_DIAL_TOKEN_FILE)=(\S+)")


async def told_by(attach: Command) -> dict[str, str]:
    """The variables that `dap-mux attach dial:N` tells its user to set in ranks."""
    await attach.says(" is set\n")  # the whole line
    found = TOLD.search(attach.err)
    assert found, attach.err
    return {found[1]: found[2], found[3]: found[4]}


async def callers(
    user: User,
    ranks: Sequence[int],
    script: str,
    told: Mapping[str, str],
    *options: str,
    arguments: Sequence[str] = (),
    world: int = 4,
) -> list[Rank]:
    """Start these ranks of `script`; they end with the test, for they are the user's."""
    return [
        await _caller(user, rank, [*options, script, *arguments], told, world) for rank in ranks
    ]


async def _caller(
    user: User, rank: int, words: Sequence[str], told: Mapping[str, str], world: int
) -> Rank:
    log = user.folder / f"caller-{rank}.log"
    numbers = {"RANK": str(rank), "WORLD_SIZE": str(world)} if rank >= 0 else {}
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dap_mux.rank", *words),
            cwd=user.folder,
            env={
                **user.environ,
                **numbers,
                "PYTHONUNBUFFERED": "1",
                **told,
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    user.others.append(process)
    return Rank(rank, 0, process, log)


@asynccontextmanager
async def taking_a_call(
    user: User, script: str, env: Mapping[str, str]
) -> AsyncIterator[DapClient]:
    """A rank that has called a session which is no more than this: what it says, by DAP."""
    called: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    called = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda *streams: called.set_result(streams), HOST, 0)
    port = server.sockets[0].getsockname()[1]
    told = {**env, "DAP_MUX_DIAL": f"{HOST}:{port}", "DAP_MUX_DIAL_TOKEN": TOKEN}
    (rank,) = await callers(user, [0], script, told, world=1)
    reader, writer = await asyncio.wait_for(called, LIMIT)
    client = DapClient(reader, writer)
    nonce = "5e55107"
    answer = await client.request("dapMuxGreeting", {"nonce": nonce}, timeout=LIMIT)
    assert answer["proof"] == proof(TOKEN, "rank", nonce, answer["nonce"])
    assert answer["rank"]["pid"] == rank.process.pid
    client.send("dapMuxTaken", {"proof": proof(TOKEN, "session", nonce, answer["nonce"])})
    try:
        yield client
    finally:
        server.close()
        await client.close()
        with suppress(ProcessLookupError):  # it has ended by itself
            rank.process.kill()
        await rank.process.wait()
