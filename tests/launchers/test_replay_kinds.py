"""One round of what `make replay-score` asks many times: each kind of program, alone at home."""

from __future__ import annotations

from typing import Final

import pytest

from tests.replay_score.rounds import equal, failing, parting
from tests.replay_score.rows import (
    CHANGES,
    EVERYTHING,
    FAILURES,
    JOBS,
    MISSING,
    Failure,
    Program,
)
from tests.support.combinations import rest
from tests.support.processes.commands import User

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]
SEED: Final = 1
SEVERAL: Final = tuple(
    each for each in CHANGES if each.name in ("other shape", MISSING, "the clock")
)
"""Each change is a start of torch; the score makes all ten."""


@pytest.mark.parametrize("job", [EVERYTHING, JOBS[-1]], ids=lambda job: job.name)
async def test_a_rank_is_alone_bit_by_bit_what_it_was(user: User, job: Program) -> None:
    found = await equal(user, job, SEED)
    assert all(steps and same for steps, same in found["kinds"].values()), found


@pytest.mark.parametrize(
    "failure",
    [failure if failure.way == "kill" else rest(failure) for failure in FAILURES],
    ids=[failure.way for failure in FAILURES],
)
async def test_a_rank_goes_as_far_as_it_went(user: User, failure: Failure) -> None:
    found = await failing(user, failure, SEED)
    assert (found["steps"], found["same"], found["said"]) == (37, True, True), found


async def test_where_a_changed_program_parts_is_named(user: User) -> None:
    found = await parting(user, SEVERAL)
    assert [*found] == [change.name for change in SEVERAL]
    assert len(found) == 3
    assert all(each["line"] and each["step"] and each["reason"] for each in found.values()), found
