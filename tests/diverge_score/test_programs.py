"""Each program has its row, runs to its end when nobody watches, and its fault is real.

One of each kind is run here, all with `DAP_MUX_DIVERGE=all`.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from math import isfinite
from typing import Final

import pytest

from tests.diverge_score.expected import CASES, ENVIRONMENT, FOLDERS, PROGRAMS, Case, Kind
from tests.launchers.tools import environment
from tests.why_score.results import ranks_of

EVERY: Final = os.environ.get("DAP_MUX_DIVERGE") == "all"
ENDS: Final = 200.0  # s, on a busy machine

heavy = [pytest.mark.heavy, pytest.mark.real, pytest.mark.timeout(500)]
Steps = dict[int, list[float]]
"""By rank, what `finish` adds up: after each step of the optimizer, and at the end."""


def cases(*kinds: Kind) -> pytest.MarkDecorator:
    rows = [
        pytest.param(case, marks=heavy, id=case.name)
        for kind in kinds
        for case in [case for case in CASES if case.kind == kind][: None if EVERY else 1]
    ]
    return pytest.mark.parametrize("case", rows)


def test_every_program_has_its_row() -> None:
    for folder in {*FOLDERS.values()}:
        names = sorted(path.stem for path in (PROGRAMS / folder).glob("*.py"))
        assert names == sorted(case.name for case in CASES if FOLDERS[case.kind] == folder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_row_says_what_can_be_named(case: Case) -> None:
    text = case.path.read_text("utf-8")
    assert bool(case.lines) == bool(case.cause)
    assert "# BUG" not in text.replace("  # BUG\n", "")
    assert ranks_of(case.ranks, case.nproc) <= set(range(case.nproc))
    assert 40 <= len(text.splitlines()) <= 120
    assert ('"--good"' in text or ".good" in text) == (case.kind == "runs")


async def steps(case: Case, *arguments: str) -> Steps:
    """Run a program; return the sums that its ranks print."""
    torchrun = str(environment("torch") / "torchrun")
    process = await asyncio.create_subprocess_exec(
        *(
            torchrun,
            "--standalone",
            "--nproc-per-node",
            str(case.nproc),
            str(case.path),
            *arguments,
        ),
        env=os.environ | ENVIRONMENT | {"DIVERGE_STEPS": "1"},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), ENDS)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    assert process.returncode == 0
    found: Steps = defaultdict(list)
    for line in out.decode().splitlines():
        match line.split():
            case ["step", _, rank, total] if rank.isdecimal():
                found[int(rank)].append(float(total))
            case ["sum", rank, total]:
                found[int(rank)].append(float(total))
    assert sorted(found) == [*range(case.nproc)]
    return found


@cases("replicas")
async def test_replicas_part(case: Case) -> None:
    found = await steps(case)
    parted = [
        any(len({found[rank][step] for rank in group}) > 1 for group in case.groups)
        for step in range(len(found[0]))
    ]
    assert parted.index(True) == case.step, found
    assert parted[-1], found


@cases("runs")
async def test_runs_part(case: Case) -> None:
    bad, good = await steps(case), await steps(case, "--good")
    parted = [
        [one[step] for one in bad.values()] != [one[step] for one in good.values()]
        for step in range(len(bad[0]))
    ]
    assert parted.index(True) == case.step, (bad, good)
    assert parted[-1], (bad, good)
    for run in (bad, good):
        assert all(len({run[rank][-1] for rank in group}) == 1 for group in case.groups), run


@cases("nan")
async def test_parameters_stop_being_finite(case: Case) -> None:
    found = await steps(case)
    finite = [all(isfinite(sums[step]) for sums in found.values()) for step in range(len(found[0]))]
    assert case.step in (None, finite.index(False)), found


@cases("slow", "healthy")
async def test_it_runs_to_its_end(case: Case) -> None:
    found = await steps(case)
    if case.kind == "healthy":
        assert all(len({found[rank][-1] for rank in group}) == 1 for group in case.groups), found
