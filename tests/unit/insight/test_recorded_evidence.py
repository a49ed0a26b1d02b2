"""Verdicts on what ranks of real jobs once told, each of which was judged wrongly before.

Each file of `recorded` is the evidence of four ranks with one fault, of the job and the kind that
its name says (tests/why_score/kinds.py): the main threads, and what differs between samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from dap_mux.pure.insight.why.evidence import Evidence, Process, RankEvidence, Sample, Standing
from dap_mux.pure.insight.why.verdict import Verdict
from dap_mux.pure.insight.why.verdicts import judge

RECORDED: Final = Path(__file__).parent / "recorded"
SAMPLES: Final = 3


class Recorded(msgspec.Struct):
    """A rank: its `samples`, or the one that it told `always`."""

    rank: int
    processes: list[Process]
    samples: list[Sample] = []
    always: Sample | None = None
    standing: dict[str, Any] = {}

    def evidence(self) -> RankEvidence:
        """Return it as it was."""
        samples = [self.always] * SAMPLES if self.always is not None else self.samples
        standing = Standing(**self.standing)
        return RankEvidence(("job", self.rank), standing, samples, self.processes)


def verdict_on(name: str, without: Sequence[int] = ()) -> Verdict:
    """Judge a file; `without`: ranks of which nothing is known from outside."""
    text = (RECORDED / f"{name}.json").read_bytes()
    ranks = msgspec.json.decode(text, type=list[Recorded])
    for each in ranks:
        if each.rank in without:
            each.processes = []
    return judge(Evidence({("job", each.rank): each.evidence() for each in ranks}))


@pytest.mark.parametrize(
    ("name", "verdict", "ranks"),
    [
        ("swapped-sockets", "mismatched-collective", [3]),
        ("sub-group-sockets", "mismatched-collective", [1, 3]),
        ("sub-group-gloo", "mismatched-collective", [0, 2]),
        ("sub-group-mpi", "mismatched-collective", [0, 2]),
        ("send-left-out-sockets", "mismatched-collective", [3, 0]),
        ("send-left-out-sockets-long", "mismatched-collective", [1, 2]),
        ("send-left-out-gloo", "mismatched-collective", [3, 0]),
        ("send-left-out-mpi", "mismatched-collective", [0, 1]),
        ("early-end-sockets", "teardown", [3]),
        ("early-end-gloo", "mismatched-collective", [3, 0]),
        ("early-end-mpi", "teardown", [3]),
        ("main-ended-gloo", "teardown", [0]),
        ("loader-disk-gloo", "input-starved", [2]),
        ("never-joins-sockets", "not-joined", [2]),
        ("never-joins-gloo", "not-joined", [3]),
        ("never-joins-mpi", "not-joined", [2]),
    ],
)
def test_cause_and_ranks_are_found(name: str, verdict: str, ranks: list[int]) -> None:
    found = verdict_on(name)
    assert found.name == verdict
    assert [each.ranks for each in found.suspects[: len(ranks)]] == [
        (("job", rank),) for rank in ranks
    ]


def test_who_waits_for_whom_is_told() -> None:
    assert verdict_on("send-left-out-gloo").sentence == (
        "ranks 0,3 wait for each other: rank 0 for rank 3 in recv from rank 3, "
        "rank 3 for rank 0 in all_reduce #5 of group default_pg"
    )


def test_nobody_is_accused_where_the_other_ends_of_sockets_are_not_known() -> None:
    assert verdict_on("swapped-sockets", without=range(4)).name == "undecided"
