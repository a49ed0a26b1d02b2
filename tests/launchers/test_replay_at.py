"""`replay --at`: at full speed to a call or a step, past breakpoints, and back from there."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from tests.launchers.launching import STARTS, launch, line, terminated, typed_into, value_in
from tests.launchers.test_replay import ENVIRON, SCRIPT, took
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.clients.consoles import PipedConsole
from tests.support.processes.commands import LIMIT, Command, User, listed

pytestmark = pytest.mark.timeout(400)
SUMS: Final = line(SCRIPT, "dist.all_reduce(loss")
AFTER_THE_SUM: Final = 6  # calls of a round: objects are two, and four messages
BACKWARD: Final = line(SCRIPT, "loss.backward()")
STEPS: Final = line(SCRIPT, "optimizer.step()")
SENDS: Final = line(SCRIPT, "work = dist.isend(")
RECEIVES: Final = line(SCRIPT, "sender = dist.recv(")
AFTER: Final = line(SCRIPT, "optimizer.zero_grad()")
ADDS: Final = line(SCRIPT, "total += float(loss)")
Json = dict[str, Any]


class Replay:
    """A replay under a client, which has a breakpoint where each round ends."""

    def __init__(self, run: Command, client: DapClient) -> None:
        self.run, self.client = run, client
        self.row = 0

    @classmethod
    async def start(cls, user: User, *words: str) -> Replay:
        """Attach before the program begins."""
        run = await launch(user, environment("torch"), ["replay", *words, "r2.rank"], **ENVIRON)
        script = str(user.folder / "train.py")
        client = await joined(run, {script: [{"line": ADDS}]}, timeout=STARTS)
        return cls(run, client)

    async def stops(self, at: int) -> None:
        """Wait until it stands there."""
        (entry,) = await listed(self.client, "line", at, within=STARTS)
        self.row = entry["threadId"]

    async def value(self, expression: str) -> str:
        """Evaluate in the innermost frame."""
        return await value_in(self.client, self.row, expression)

    async def moves(self, command: str, **arguments: object) -> None:
        """Step or continue."""
        named = {} if command == "restart" else {"threadId": self.row}
        await self.client.request(command, {**named, **arguments}, timeout=LIMIT)


async def test_it_runs_to_a_step_or_a_call_and_back_from_there(user: User) -> None:
    (calls,) = re.findall(r"r2\.rank: (\d+) calls", await took(user))
    replay = await Replay.start(user, "--at", "3")
    await replay.stops(STEPS)
    assert await replay.value("number") == "5", "every other round steps"
    await replay.moves("next")
    await replay.stops(AFTER)
    await replay.moves("continue")
    await replay.stops(ADDS)
    assert await replay.value("number") == "5"
    await replay.moves("restart", to=f"call:{int(calls) - AFTER_THE_SUM}")
    await replay.stops(SUMS)
    assert await replay.value("number") == "7"
    own = await replay.value("float(loss)")
    await replay.moves("next")
    await replay.stops(SUMS + 1)
    summed = await replay.value("float(loss)")
    assert summed != own, "it had not been answered"
    await replay.moves("stepBack")
    await replay.stops(SUMS)
    assert await replay.value("float(loss)") == own
    await replay.moves("stepBack")
    await replay.stops(BACKWARD)
    await replay.moves("continue")
    await replay.stops(ADDS)
    assert await replay.value("(number, float(loss))") == f"(7, {summed})"
    await terminated(replay.run, replay.client)


@pytest.mark.rest
async def test_the_console_goes_back(user: User) -> None:
    await took(user, "fail")
    words = ["replay", "--console", "--at", "last", "r2.rank"]
    run = await typed_into(user, environment("torch"), words, **ENVIRON)
    console = PipedConsole(run)
    for typed, at, shown in (
        ("", RECEIVES, "before call"),
        ("back", SENDS, ", send ("),
        ("restart to step 2", STEPS, "where step 2 begins, behind Adam.step()"),
    ):
        console.type(typed, "wait all running 20", "wait all stopped 60")
        said = await console.until(f"2 stopped at train.py:{at} ")
        if shown not in said:  # what a rank says has another way than its stops
            await console.sees(shown)
    assert "usage: restart, or in a replay restart to" in await console.does("restart 7")
    console.type("c")
    await console.sees("ValueError: total ")
    console.type("quit")
    assert (await run.ends(within=STARTS)).code
