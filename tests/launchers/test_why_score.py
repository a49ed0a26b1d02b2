"""Faults of real jobs: they are what they are called, and `dap-mux why` finds rank and cause.

Some of the runs of `make why-score`, whose score stands in docs/why.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest

from tests.support.combinations import rest
from tests.why_score.__main__ import engines, plan
from tests.why_score.ranks import Parents, jobs
from tests.why_score.results import judged, ranks_of
from tests.why_score.runner import ask, run

pytestmark = pytest.mark.timeout(180)
RUNS: Final = [
    *("mpi/skipped/0", "mpi/other-kind/0", "mpi/exception/0", "socket/killed/0"),
    *("gloo/gil-asleep/0", "gloo/breakpoint/0", "gloo/healthy-busy/0"),
]
MORE: Final = [
    *("gloo/skipped/0", "gloo/extra/0", "gloo/swapped/0", "gloo/file-lock/0"),
    *("socket/stopped-process/0", "socket/gil-busy/0", "socket/paused/0", "socket/native-work/0"),
    *("mpi/loader-asleep/0", "socket/healthy-checkpoint/0"),
]
PLACES: Final = {
    "skipped": ("barrier", "all_reduce"),
    "extra": ("all_reduce", "barrier"),
    "swapped": ("barrier", "all_reduce"),
    "recv-before-send": ("exchange", "exchange"),
    "never-joins": ("wait_for_config", "connect"),
    "exception": ("barrier", "train"),
    "early-end": ("close", "train"),
    "lock-cycle": ("lock_cycle", "train"),
    "slow-disk": ("read_bytes", "train"),
    "file-lock": ("lock_file", "train"),
    "fetch": ("urlopen", "train"),
    "prompt": ("read_terminal", "train"),
    "child-process": ("wait", "train"),
    "pdb": ("interaction", "train"),
    "loader-gone": ("get", "train"),
}
"""A function on the stack of the rank with the fault, and one on that of each other rank."""
JUDGED: Final = frozenset({"skipped", "lock-cycle", "slow-disk"})
"""Of these the same job is asked `why`, too."""


@pytest.fixture
async def parents() -> AsyncIterator[Parents]:
    there = Parents()
    yield there
    await there.close()


@pytest.mark.parametrize("name", [*RUNS, *map(rest, MORE)])
async def test_rank_and_cause_are_right(name: str, parents: Parents) -> None:
    job, fault, number = name.split("/")
    result = await run(plan(job, fault, int(number)), jobs(engines())[job], parents)
    if result.not_run.endswith("tests/launchers/install"):
        pytest.skip(result.not_run)
    assert result.right, result


@pytest.mark.parametrize("fault", PLACES)
async def test_a_fault_is_what_it_is_called(fault: str, parents: Parents) -> None:
    wanted = plan("socket", fault, 0)
    commands = ("why", "stacks") if fault in JUDGED else ("stacks",)
    *why, stacks = await ask(wanted, jobs(engines())["socket"], parents, *commands)
    assert all(judged(wanted, *each).right for each in why), why
    (main,) = stacks.body["threads"]
    functions = {rank: set[str]() for rank in range(wanted.size)}
    for branch in main["branches"]:
        for rank, name in _functions(branch):
            functions[rank].add(name)
    own, others = PLACES[fault]
    assert own in functions.pop(wanted.rank)
    assert all(others in each for each in functions.values()), functions


def _functions(branch: dict[str, Any]) -> Iterator[tuple[int, str]]:
    for rank in ranks_of(branch["ranks"], 4):
        yield from ((rank, frame["name"]) for frame in branch["frames"])
    for inner in branch["branches"]:
        yield from _functions(inner)
