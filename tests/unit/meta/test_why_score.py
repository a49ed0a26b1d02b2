"""What counts as right in the score of `why`, and what its page says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.why_score.__main__ import RUNS, plans
from tests.why_score.jobs.blocking import FAULTS, PACES
from tests.why_score.jobs.faults import FROM_OUTSIDE
from tests.why_score.kinds import CODES, KINDS, is_healthy
from tests.why_score.results import Plan, judged
from tests.why_score.score import Score

PLAN = Plan("socket", "skipped", 0, rank=2, step=3, size=4)


def said(verdict: str, *ranks: str) -> dict[str, Any]:
    return {"verdict": verdict, "suspects": [{"ranks": each} for each in ranks]}


@pytest.mark.parametrize(
    ("fault", "verdict", "ranks", "right"),
    [
        ("skipped", "mismatched-collective", ("2", "0-1"), True),
        ("skipped", "mismatched-collective", ("job.ranks(2)",), True),
        ("skipped", "mismatched-collective", ("0-1", "2"), False),
        ("skipped", "mismatched-collective", ("2-3",), False),
        ("skipped", "slow-rank", ("2",), False),
        ("skipped", "mismatched-collective", ("nonsense(",), False),
        ("recv-pair", "p2p-cycle", ("2", "3"), True),
        ("recv-pair", "p2p-cycle", ("2", "3", "0-1"), True),
        ("recv-pair", "p2p-cycle", ("2",), False),
        ("recv-pair", "p2p-cycle", ("0", "2", "3"), False),
        ("recv-before-send", "p2p-cycle", ("0-3",), True),
        ("send-left-out", "p2p-cycle", ("2-3",), True),
        ("send-left-out", "p2p-cycle", ("2", "0"), True),
        ("sub-group", "mismatched-collective", ("0,2",), True),
        ("healthy", "healthy", (), True),
        ("healthy", "undecided", (), False),
    ],
)
def test_cause_and_rank_have_to_be_right(
    fault: str, verdict: str, ranks: tuple[str, ...], right: bool
) -> None:
    body = said(verdict, *ranks)
    assert judged(replace(PLAN, fault=fault), body, CODES[verdict], 1.0).right is right


def test_the_exit_code_has_to_be_that_of_the_verdict() -> None:
    assert not judged(PLAN, said("mismatched-collective", "2"), 1, 1.0).right_cause


def test_each_fault_can_be_made() -> None:
    asked_for = {fault for fault in KINDS if fault not in (*FAULTS, *PACES, *FROM_OUTSIDE)}
    folder = Path(__file__).parents[2] / "why_score" / "jobs"
    programs = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    assert {fault for fault in asked_for if f'"{fault}"' not in programs} == set()
    assert {*FAULTS, *PACES, *FROM_OUTSIDE} <= KINDS.keys()


def test_there_are_as_many_runs_as_promised() -> None:
    drawn = list(plans(RUNS))
    healthy = [one for one in drawn if is_healthy(one.fault)]
    assert len({one.name for one in drawn}) == len(drawn)
    assert len(drawn) - len(healthy) >= 400
    assert len(healthy) >= 200
    assert len(KINDS) - len(PACES) >= 20
    assert {one.size for one in drawn} == {4, 64}


def test_a_false_alarm_breaks_the_promise() -> None:
    right = judged(PLAN, said("mismatched-collective", "2"), 16, 1.0)
    healthy = replace(PLAN, fault="healthy")
    assert Score([right, judged(healthy, said("undecided"), 1, 1.0)]).held
    assert not Score([right, judged(healthy, said("slow-rank", "1"), 22, 1.0)]).held


def test_one_of_twenty_may_be_wrong() -> None:
    right = [judged(PLAN, said("mismatched-collective", "2"), 16, 1.0)] * 19
    wrong = judged(PLAN, said("slow-rank", "2"), 22, 1.0)
    assert Score([*right, wrong]).held
    assert not Score([*right, wrong, wrong]).held


def test_many_ranks_may_take_two_seconds() -> None:
    many = replace(PLAN, size=64)
    assert Score([judged(many, said("mismatched-collective", "2"), 16, 2.0)]).held
    assert not Score([judged(many, said("mismatched-collective", "2"), 16, 2.1)]).held
