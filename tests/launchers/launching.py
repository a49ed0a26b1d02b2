"""A job of four ranks that a launcher starts, from the first stop to the launcher's exit code."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from dap_mux.client import DapClient
from tests.launchers.tools import environment
from tests.support.processes.commands import LIMIT, Command, Done, User, bodies, listed
from tests.support.processes.proc_net import free_ports

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
PAGE: Final = (ROOT / "docs/launchers.md").read_text("utf-8")
BEGIN: Final = "dap-mux run -- "
STARTS: Final = 3 * LIMIT  # torch alone takes ten seconds to import on a busy machine
RANKS: Final = 4
Json = dict[str, Any]
T = TypeVar("T")


def line(program: Path, text: str) -> int:
    """The number of the program's one line with this text in it."""
    lines = program.read_text("utf-8").splitlines()
    (found,) = (number for number, each in enumerate(lines, 1) if text in each)
    return found


def documented(*having: str) -> list[str]:
    """The words of the one command of docs/launchers.md that has these in it, without ours.

    Where its ranks would meet at a port that is always the same, they have one of their own.
    """
    lines = [each.partition("#") for each in PAGE.splitlines() if each.startswith(BEGIN)]
    (command,) = (
        command
        for command, _, comment in lines
        if all(word in f"{command} {comment}" for word in having)
    )
    words = shlex.split(command)[1:]
    if "accelerate" in words:
        place = words.index("--cpu")
        words[place:place] = ["--main_process_port", str(free_ports(1))]
    if "examples/spawn/train.py" in words:
        words += ["--port", str(free_ports(1))]
    return words


async def seen(
    ask: Callable[[], Awaitable[T]], holds: Callable[[T], object], *, within: float = STARTS
) -> T:
    """Ask until the answer is so; return it."""
    end = asyncio.get_running_loop().time() + within
    while not holds(found := await ask()):
        assert asyncio.get_running_loop().time() < end, found
        await asyncio.sleep(0.05)
    return found


async def launch(user: User, engine: Path, words: list[str], **env: str) -> Command:
    """Start `dap-mux WORDS`, with an engine's programs first in PATH, beside the examples."""
    return await user.start(*words, env=_variables(user, engine, env))


async def run_torch(
    user: User, options: Sequence[str], script: Path, *arguments: str, ranks: int = 2, **env: str
) -> Command:
    """Start `dap-mux run OPTIONS` of a script in some ranks of torch."""
    words = ["run", *options, "--", "torchrun", "--standalone", "--nproc-per-node", str(ranks)]
    env = {"OMP_NUM_THREADS": "1", **env}
    return await launch(user, environment("torch"), [*words, str(script), *arguments], **env)


async def typed_into(user: User, engine: Path, words: list[str], **env: str) -> Command:
    """Start it likewise, with pipes for a console."""
    return await user.start(*words, piped=True, env=_variables(user, engine, env))


def _variables(user: User, engine: Path, env: dict[str, str]) -> dict[str, str]:
    if not (user.folder / "examples").exists():
        (user.folder / "examples").symlink_to(EXAMPLES)
    path = f"{engine}{os.pathsep}{user.environ['PATH']}"
    return {**env, "PATH": path, "DAP_MUX_BASE_PORT": str(free_ports(2 * RANKS))}


async def held(client: DapClient, *ranks: int, at: int) -> list[Json]:
    """Wait until these ranks stand at a line, and the others run: in the collective."""
    lines = [at if rank in ranks else None for rank in range(RANKS)]
    await listed(client, "line", *lines, within=STARTS)
    # A rank may be known to run only a moment after it has: its answer takes its own way.
    states = ["stopped" if rank in ranks else "running" for rank in range(RANKS)]
    return await listed(client, "state", *states, within=STARTS)


async def released(user: User, run: Command, client: DapClient, code: int = 0) -> Done:
    """Let all ranks go; the job ends with this exit code, and nothing is left of it."""
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)
    await client.wait_event("terminated", timeout=STARTS)
    assert bodies(client, "exited") == [{"exitCode": code}], run.out[-4000:] + run.err[-4000:]
    await client.disconnect()
    done = await run.ends(within=STARTS)
    assert done.code == code, done.err
    await user.nothing_is_left(within=LIMIT)
    return done


async def control(client: DapClient, command: str, entry: Json) -> None:
    """Look at a stopped rank, and act on its class (a step) or on all (continue)."""
    row = {"threadId": entry["threadId"]}
    top = (await client.request("stackTrace", row, timeout=LIMIT))["stackFrames"][0]
    await client.request("scopes", {"frameId": top["id"]}, timeout=LIMIT)
    await client.request(command, row, timeout=LIMIT)


async def cast(client: DapClient, ranks: str, command: str) -> list[tuple[str, str]]:
    """The answers, folded: whose, and what."""
    body = await client.request("cast", {"ranks": ranks, "command": command}, timeout=LIMIT)
    assert not body["errors"], body
    return [(each["ranks"], each["value"]) for each in body["results"]]


async def value_in(client: DapClient, thread: int, expression: str) -> str:
    """The value of an expression in the innermost frame of a stopped rank."""
    stack = await client.request("stackTrace", {"threadId": thread}, timeout=LIMIT)
    asked = {"expression": expression, "frameId": stack["stackFrames"][0]["id"]}
    return str((await client.request("evaluate", asked, timeout=LIMIT))["result"])


async def terminated(run: Command, client: DapClient) -> None:
    """End a job, and see that it has gone."""
    await client.request("terminate", timeout=STARTS)
    await client.wait_event("terminated", timeout=STARTS)
    await client.disconnect()
    await run.ends(within=STARTS)


def weight(steps: int) -> str:
    """What four ranks have learnt after so many steps: the mean of x squared is 7.5."""
    return f"weight {3 * (1 - 0.85**steps):.4f}"
