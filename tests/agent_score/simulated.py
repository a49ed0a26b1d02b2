"""The agent on 512 ranks that answer as the eight of a real job have answered a session."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.agent_score.expected import RANKS, Bug
from tests.agent_score.jobs import Running, settled
from tests.agent_score.recorded import HOST, Recorder, peers_of
from tests.support.processes.commands import LIMIT, User, listed
from tests.support.processes.proc_net import free_ports, listens
from tests.support.processes.waiting import until
from tests.why_score.ranks import ROOT
from tests.why_score.results import ranks_of

MANY: Final = 512
FOLDER: Final = ROOT / "build" / "agent-score"
LOOKS: Final = 3
ATTACHED_S: Final = 120.0
Json = dict[str, Any]
Look = Callable[[Running, Bug], Awaitable[Json]]


@asynccontextmanager
async def attached(user: User, ports: Sequence[int], program: Path) -> AsyncIterator[Running]:
    """Attach a session to ranks, and somebody's editor to that."""
    run = await user.start("attach", *(f"{HOST}:{port}" for port in ports))
    session = await run.session()
    human = await run.client("human", all_answered=False)
    await human.handshake({"justMyCode": True}, client_id="vscode", timeout=ATTACHED_S)
    await listed(human, "state", *["running"] * len(ports), within=ATTACHED_S)
    yield Running(user, run, f"{session['host']}:{session['port']}", program)


async def look(bug: Bug, by_tools: Look) -> tuple[Json, Json]:
    """Let the agent look at eight real ranks, and at 512 that answer as they do."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{bug.name}.json"
    few = await _record(bug, by_tools, path)
    with tempfile.TemporaryDirectory(prefix="score-") as folder:
        user = User(Path(folder))
        words = ("-m", "tests.agent_score.recorded", str(path), str(MANY))
        ranks = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdout=asyncio.subprocess.PIPE, cwd=ROOT
        )
        try:
            assert ranks.stdout is not None
            ports = json.loads(await asyncio.wait_for(ranks.stdout.readline(), LIMIT))
            async with attached(user, ports, Path(few["named"]["file"])) as job:
                return few, await by_tools(job, bug)
        finally:
            await user.close()
            ranks.kill()
            await ranks.wait()


async def _record(bug: Bug, by_tools: Look, path: Path) -> Json:
    """Write what real ranks answer while the agent looks, more than once."""
    async with AsyncExitStack() as stack:
        user = User(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="score-"))))
        stack.push_async_callback(user.close)
        first = await _start(user, bug.path)
        recorders = [Recorder(first + rank) for rank in range(RANKS)]
        served = [await stack.enter_async_context(each.serving()) for each in recorders]
        job = await stack.enter_async_context(attached(user, served, bug.path))
        await settled(job, rests=bug.symptom == "hang")
        found = [await by_tools(job, bug) for _ in range(LOOKS)]
        told = {rank: each.answers for rank, each in enumerate(recorders)}
        peers = await asyncio.to_thread(peers_of, told)
    usual = max({*range(RANKS)} - ranks_of(bug.ranks, RANKS))
    text = json.dumps({"usual": usual, "told": told, "peers": peers})
    await asyncio.to_thread(path.write_text, text, "utf-8")
    return found[0]


async def _start(user: User, program: Path) -> int:
    """Start ranks that no session has started; return the port of the first."""
    first, meeting = free_ports(2 * RANKS), free_ports(1)
    for rank in range(RANKS):
        port = first + rank
        place = {"RANK": rank, "WORLD_SIZE": RANKS, "MASTER_ADDR": HOST, "MASTER_PORT": meeting}
        environ = {**user.environ, **{name: str(value) for name, value in place.items()}}
        words = ("-m", "dap_mux.rank", "--no-wait", "--port", str(port), str(program))
        user.others.append(
            await asyncio.create_subprocess_exec(sys.executable, *words, env=environ)
        )
        await until(partial(listens, port), within=LIMIT, what="a rank listens")
    return first
