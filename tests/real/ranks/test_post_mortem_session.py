"""One rank of four fails: the session shows it, and the others are neither killed nor lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.driving import Driver, driving
from tests.real.ranks.agents import START_UP, Agent, Start
from tests.support.processes.commands import line_of

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]

FAILS_IN_RANK_2 = """\
import os
import time
from pathlib import Path

rank = int(os.environ["RANK"])


def step(loss):
    if rank == 2:
        raise ValueError(f"bad loss {loss}")  # fail
    return loss


step(rank + 0.5)  # start
while not Path("go").exists():
    time.sleep(0.01)
print("end", rank)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(FAILS_IN_RANK_2)
    return path


async def four(start: Start, *options: str) -> list[Agent]:
    environs = [{"RANK": str(rank), "WORLD_SIZE": "4"} for rank in range(4)]
    return [await start(*options, "train.py", **environ) for environ in environs]


async def others_end_well(agents: list[Agent], program: Path) -> None:
    """All but rank 2."""
    program.with_name("go").touch()
    assert [await agents[rank].ends() for rank in (0, 1, 3)] == [0, 0, 0]


async def held(driver: Driver, program: Path) -> None:
    """Wait until rank 2 is stopped at its exception and the others run.

    A busy rank's stop is told before its stack is known: the place is waited for, too.
    """
    there = ("stopped", "exception", line_of(str(program), "fail"))
    wanted = [("running", None, None)] * 2 + [there, ("running", None, None)]
    await driver.until(
        lambda entries: [(e["state"], e["reason"], e["line"]) for e in entries] == wanted,
        within=START_UP,
        what="rank 2 held",
    )


async def stack(driver: Driver, rank: int) -> list[tuple[str, int]]:
    """Return the frames of a rank's only thread, as `stacks` shows them."""
    body = await driver.client.request("stacks", {"ranks": str(rank)}, timeout=START_UP)
    frames = body["threads"][0]["branches"][0]["frames"]
    return [(frame["name"], frame["line"]) for frame in frames if not frame["library"]]


def left(program: Path) -> list[tuple[str, int]]:
    """Return the frames that the exception has left."""
    path = str(program)
    return [("<module>", line_of(path, "start")), ("step", line_of(path, "fail"))]


async def test_it_is_shown_with_its_locals_and_continue_ends_it_alone(
    start: Start, program: Path
) -> None:
    agents = await four(start)
    async with driving([agent.record["port"] for agent in agents]) as driver:
        await held(driver, program)
        assert await driver.value(2, "loss") == "2.5"
        assert await stack(driver, 2) == left(program)
        stop = await driver.client.wait_event("stopped", timeout=START_UP)
        assert stop["threadId"] == driver.row(2)
        assert "ValueError" in stop.get("text", "") + stop.get("description", "")
        await driver.control("continue", 2)
        assert await agents[2].ends() == 1
        assert "ValueError: bad loss 2.5" in agents[2].text()
        others = [entry["state"] for entry in await driver.entries() if entry["rank"] != 2]
        assert others == ["running"] * 3
        await others_end_well(agents, program)


async def test_the_last_editor_leaves_and_it_ends(start: Start, program: Path) -> None:
    agents = await four(start)
    async with driving(
        [agent.record["port"] for agent in agents], exceptions=["uncaught"]
    ) as driver:
        await held(driver, program)
        assert await stack(driver, 2) == left(program)
        await driver.leave()
        assert await agents[2].ends() == 1
        assert "held" not in agents[2].text()
    await others_end_well(agents, program)


async def test_nobody_is_there_and_an_editor_that_comes_finds_it(
    start: Start, program: Path
) -> None:
    agents = await four(start, "--no-wait")
    async with driving([agent.record["port"] for agent in agents]) as driver:
        await held(driver, program)
        assert await driver.value(2, "loss") == "2.5"
        await driver.client.request("release", {"ranks": "2"}, timeout=START_UP)
        assert await agents[2].ends() == 1
    await others_end_well(agents, program)
