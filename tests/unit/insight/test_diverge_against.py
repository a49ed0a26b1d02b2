"""A run that is recorded, beside one that tells its steps: from which on they differ."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.numerics.diverge_against import RecordedRun
from dap_mux.pure.protocol.rank_messages import StepTold
from dap_mux.rank.comm.live import Live
from dap_mux.rank.comm.steps import Step
from tests.unit.insight.test_diverge import call, op, step, trace

VALUES = [{"w": "w1", "v@0": "v1"}, {"w": "w2", "v@0": "v2"}, {"w": "w3", "v@0": "v3"}]


def run(values: list[dict[str, str]], *, first: int = 0, line: int = 7) -> list[Any]:
    """The lines of a rank: a call and a step each."""
    return [
        each
        for number, after in enumerate(values, first)
        for each in (
            call(line, number, f"g{number}", f"s{number}"),
            step(number, {"w": f"s{number}"}, after, before={"w": "w0"} if number == 0 else {}),
        )
    ]


def told(number: int, after: dict[str, str], *, sets: dict[str, str] | None = None) -> StepTold:
    """What a rank tells of a step."""
    live, one = Live(), Step(number, "SGD", "train.py:90 f")
    live.sets = sets or {}
    one.after, one.before = after, {"w": "w0"} if number == 0 else {}
    digests, whole = live._digests(one)
    return StepTold(number, (0, number), digests, whole)


@pytest.mark.parametrize("sets", [None, {"w": "1", "v@0": "-"}], ids=["one set", "several"])
def test_a_step_with_other_values_differs(sets: dict[str, str] | None) -> None:
    recorded = RecordedRun("before", [trace(0, *run(VALUES)), trace(1, *run(VALUES))])
    for number, after in enumerate(VALUES):
        said = told(number, after, sets=sets)
        assert not recorded.differs(1, said)
        assert recorded.differs(1, told(number, {**after, "v@0": "other"}, sets=sets))
        assert not recorded.differs(2, said), "no such rank was recorded"
    assert not recorded.differs(0, told(3, {"w": "w4"})), "it had ended"
    late = told(1, {"w": "other"})
    late.order = 40, 1
    assert not recorded.differs(0, late), "its steps count from when it was looked at"


def test_the_first_difference_is_looked_for_in_what_is_still_known() -> None:
    recorded = RecordedRun("before", [trace(0, *run(VALUES)), trace(1, *run(VALUES))])
    parted = [VALUES[0], VALUES[1], {**VALUES[2], "w": "other"}]
    live = [trace(rank, *run(parted[1:], first=1, line=8)).lines for rank in range(2)]
    found = recorded.parting({0: live[0], 1: live[1], 5: live[0]})
    assert found is not None
    assert (found.step, found.ranks, found.other) == (2, [0, 1], "train.py:90 f")
    assert found.sentence == "values differ by w in the SGD step at train.py:90 f"
    assert found.equal == "all_reduce #2 of group 0 at train.py:7 f"
    assert recorded.parting({5: live[0], 0: []}) is None


def test_traces_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(DapMuxError, match=r"before: it has each operation, and other hashes"):
        RecordedRun("before", [trace(0, op(1, "mm", "x w", "y"), *run(VALUES))])
    with pytest.raises(DapMuxError, match=r"before: it has no step of an optimizer"):
        RecordedRun("before", [trace(0, call(7, 1, "g", "s"))])
