"""Each planted bug has its row, and shows its symptom at eight real ranks.

One of each symptom is tried here, all with `DAP_MUX_BUGS=all`: `make agent-score` runs them, too.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from tests.agent_score.expected import BUGS, CAUSES, PROGRAMS, RANKS, Bug
from tests.launchers.launching import STARTS, cast, line, seen
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, Command, User, listed
from tests.why_score.results import ranks_of

HUNG_FOR: Final = 5.0  # s without a change: ten steps of the slowest program
LOOKS: Final = 12
GATHER: Final = 8.0  # s for all ranks to come to one line
EVERY: Final = os.environ.get("DAP_MUX_BUGS") == "all"
HELPERS: Final = {"mini_mpi"}

heavy = [pytest.mark.heavy, pytest.mark.real, pytest.mark.timeout(300)]


def at_fault(bug: Bug) -> frozenset[int]:
    return frozenset(range(RANKS)) if bug.ranks == "all" else ranks_of(bug.ranks, RANKS)


def test_every_program_has_its_row() -> None:
    names = {path.stem for path in PROGRAMS.glob("*.py")} - HELPERS
    assert sorted(names) == sorted(bug.name for bug in BUGS)
    assert len(BUGS) >= 25
    assert Counter(bug.late for bug in BUGS if bug.late) == {1: 5, 2: 5}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_row_says_what_can_be_named(bug: Bug) -> None:
    assert bug.lines
    assert bug.cause in CAUSES
    assert at_fault(bug) <= set(range(RANKS))
    assert bool(bug.watch) == bool(bug.at) == (bug.symptom == "wrong")
    if bug.at:
        at = line(bug.path, bug.at)
        assert " for " not in bug.path.read_text("utf-8").splitlines()[at - 1]
    assert 40 <= len(bug.path.read_text("utf-8").splitlines()) <= 120


def bugs(symptom: str) -> pytest.MarkDecorator:
    rows = [pytest.param(bug, marks=heavy, id=bug.name) for bug in BUGS if bug.symptom == symptom]
    return pytest.mark.parametrize("bug", rows if EVERY else rows[:1])


async def start(user: User, bug: Bug) -> Command:
    """Start the ranks of a program, which wait for no debugger."""
    env = {"TMPDIR": str(user.folder), "OMP_NUM_THREADS": "1"}
    if bug.launcher == "python":
        return await user.start("run", "--no-wait", "-n", str(RANKS), str(bug.path), env=env)
    env["PATH"] = f"{environment('torch')}{os.pathsep}{user.environ['PATH']}"
    torchrun = ["torchrun", "--standalone", "--nproc-per-node", str(RANKS), str(bug.path)]
    return await user.start("run", "--no-wait", "--", *torchrun, env=env)


async def lines(user: User, bug: Bug) -> dict[int, int]:
    """The line of the program that each rank's main thread is at, by rank."""
    done = await user.does("stacks", "--json")
    found: dict[int, int] = {}

    def look(branch: dict[str, Any]) -> None:
        for frame in branch["frames"]:
            if Path(frame["path"]).name == bug.path.name:
                ranks = ranks_of(branch["ranks"], RANKS)
                found.update(dict.fromkeys(ranks, int(frame["line"])))
        for inner in branch["branches"]:
            look(inner)

    for thread in json.loads(done.out or '{"threads": []}')["threads"]:
        if thread["name"] == "MainThread":
            for branch in thread["branches"]:
                look(branch)
    return found


async def begun(user: User, bug: Bug) -> Command:
    """A job whose ranks all run the program."""
    run = await start(user, bug)
    await run.session()
    await seen(lambda: lines(user, bug), lambda found: len(found) == RANKS)
    return run


@bugs("hang")
async def test_it_hangs(user: User, bug: Bug) -> None:
    run = await begun(user, bug)
    clock = asyncio.get_running_loop().time
    since, before = clock(), (run.out, await lines(user, bug))

    async def still() -> float:
        nonlocal since, before
        now = (run.out, await lines(user, bug))
        begins = bug.ranks != "all" and len(set(now[1].values())) == 1  # in a slow start, say
        if now != before or begins:
            since, before = clock(), now
        return clock() - since

    await seen(still, lambda seconds: seconds > HUNG_FOR, within=STARTS)
    print(bug.name, before[1])
    assert run.process.returncode is None


@bugs("slow")
async def test_it_is_slow(user: User, bug: Bug) -> None:
    await begun(user, bug)
    places: dict[int, Counter[int]] = {rank: Counter() for rank in range(RANKS)}
    for _ in range(LOOKS):
        for rank, at in (await lines(user, bug)).items():
            places[rank][at] += 1
    usual = {rank: count.most_common(1)[0][0] for rank, count in places.items()}
    print(bug.name, usual)
    others = {at for rank, at in usual.items() if rank not in at_fault(bug)}
    assert len(others) == 1, places
    assert not others & {usual[rank] for rank in at_fault(bug)}, places


async def gathered(client: DapClient, at: int) -> bool:
    """Whether all ranks stop at a line; one may have been past it when its breakpoint came."""
    with suppress(AssertionError):
        return bool(await listed(client, "line", *[at] * RANKS, within=GATHER))
    return False


@bugs("wrong")
async def test_its_values_differ(user: User, bug: Bug) -> None:
    run = await begun(user, bug)
    at = line(bug.path, bug.at)
    client = await joined(run, {str(bug.path): [at]}, timeout=STARTS)
    found: list[tuple[str, str]] = []
    while len(found) < 2:
        if await gathered(client, at):
            found = await cast(client, "all", f"p {bug.watch}")
        for entry in (await client.request("list", timeout=LIMIT))["ranks"]:
            if entry["state"] == "stopped" and len(found) < 2:
                await client.request("continue", {"threadId": entry["threadId"]}, timeout=LIMIT)
                break
    print(bug.name, found)


@bugs("crash")
async def test_it_crashes(user: User, bug: Bug) -> None:
    done = await (await start(user, bug)).ends(within=STARTS)
    print(bug.name, done.err)
    assert done.code == 1
    assert "the job failed" in done.err
