"""Which steps of ranks that run are looked at more closely, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from dap_mux.pure.insight.numerics.diverge import Divergence
from dap_mux.pure.insight.numerics.diverge_live import LiveReplicas, Suspect
from dap_mux.pure.insight.numerics.diverge_trace import Line, Step
from dap_mux.pure.protocol.rank_messages import StepTold
from dap_mux.rank.comm.live import Live
from dap_mux.rank.comm.steps import Step as StepOfRank

GROUPS: Final[Mapping[str, Any]] = {"groups": {"w": "0", "v": "0"}}
Values = Mapping[int, Mapping[str, str]]


def tell(job: LiveReplicas, number: int, digests: Sequence[str | Mapping[str, str]]) -> None:
    """Each rank has ended that step; None: it has not."""
    for rank, digest in enumerate(digests):
        each = {"": digest} if isinstance(digest, str) else digest
        job.add(rank, StepTold(number, (0, number), dict(each)))


def suspect_of(job: LiveReplicas, ranks: int) -> Suspect:
    """The step that differs."""
    found = job.due(range(ranks))
    assert found is not None
    return found


def lines(number: int, values: Values, gradient: str = "g", **more: Any) -> dict[int, list[Line]]:
    """What ranks send of a step: parameters after it, by rank."""
    return {
        rank: [
            msgspec.convert(
                {
                    "kind": "step", "number": number, "optimizer": "SGD", "place": "train.py:9 f",
                    "order": [0, number], "after": after,
                    "gradients": {name: f"{gradient}-{name}" for name in after}, **more,
                },
                Line,
            )
        ]
        for rank, after in values.items()
    }  # fmt: skip


def judged(job: LiveReplicas, suspect: Suspect, sent: dict[int, list[Line]]) -> Divergence:
    """What parts, where something does."""
    found = job.judge(suspect, {rank: sent[rank] for rank in suspect.asked()})
    assert found is not None
    return found


def test_equal_steps_ask_for_nothing_and_all_live_ranks_are_awaited() -> None:
    job = LiveReplicas()
    tell(job, 0, ["a", "a", "a"])
    assert job.due(range(3)) is None
    tell(job, 1, ["a", "b"])
    assert job.due(range(3)) is None  # the third may still come
    assert suspect_of(job, 2).told.keys() == {0, 1}  # it has ended


def test_a_rank_that_makes_no_steps_is_not_awaited_for_ever() -> None:
    job = LiveReplicas()
    for step, digests in enumerate((["a", "a"], ["a", "b"], ["a", "b"], ["a", "b"])):
        tell(job, step, digests)
    assert suspect_of(job, 3).order == (0, 1)


def test_of_many_ranks_few_are_asked_and_all_are_named() -> None:
    job = LiveReplicas()
    tell(job, 7, ["odd", *["usual"] * 510, "odd"])
    suspect = suspect_of(job, 512)
    assert suspect.asked() == [0, 1, 2, 3]
    sent = lines(7, {0: {"w": "x"}} | {rank: {"w": "y"} for rank in (1, 2, 3)}, **GROUPS)
    found = judged(job, suspect, sent)
    assert (found.kind, found.step, found.tensor) == ("update", 7, "w")
    assert (found.ranks, len(found.others)) == ([0, 511], 510)


def test_an_expression_that_differs_is_named_and_one_without_a_value_refuses_nothing() -> None:
    job = LiveReplicas()
    sent = lines(4, {0: {"w": "x"}, 1: {"w": "x"}}, equal={"lr": "1"})
    step = sent[1][0]
    assert isinstance(step, Step)
    step.equal = {"lr": "2"}
    tell(job, 4, [{"": "a", "=": "1"}, {"": "a", "=": "2"}])
    found = judged(job, suspect_of(job, 2), sent)
    assert (found.kind, found.step, found.tensor, found.ranks) == ("equal", 4, "lr", [1])
    tell(job, 5, [{"": "a", "=": "-"}, {"": "b", "=": "-"}])
    sent = lines(5, {0: {"w": "x"}, 1: {"w": "y"}}, failed={"lr": "NameError: lr"}, **GROUPS)
    assert judged(job, suspect_of(job, 2), sent).kind == "update"


def test_an_expression_is_told_as_parameters_are_and_why_it_has_no_value_once() -> None:
    said: list[str] = []
    live, step = Live("lr", said.append), StepOfRank(0, "SGD", "train.py:9 f")
    step.after = {"w": "x"}
    assert {**live._digests(step)[0]}.keys() == {"", "="}
    before = live._digests(step)
    step.equal = {"lr": "1"}
    assert (live._digests(step)[0]["="] != before[0]["="], live._digests(step)[1]) == (True, "")
    step.failed = {"lr": "NameError: lr"}
    for _ in range(2):
        live._say_failed(step)
    assert said == ["has no value of lr: NameError: lr, at train.py:9 f"]


def test_it_is_told_again_only_after_a_step_that_was_equal() -> None:
    job = LiveReplicas()
    sent = lines(0, {0: {"w": "x"}, 1: {"w": "y"}}, **GROUPS)
    tell(job, 0, ["a", "b"])
    judged(job, suspect_of(job, 2), sent)
    tell(job, 1, ["a", "b"])
    assert job.due(range(2)) is None
    tell(job, 2, ["a", "a"])
    tell(job, 3, ["a", "b"])
    assert suspect_of(job, 2).order == (0, 3)


def test_shards_differ_by_design_and_the_rest_is_watched_from_then_on() -> None:
    job = LiveReplicas()
    for step in range(8):
        tell(job, step, [f"all-{rank}" for rank in range(4)])
        # Two columns of tensor parallelism, of two replicas each; `w` is sharded, `v` is not.
        values = {rank: {f"w@{rank % 2}": f"w{rank % 2}", "v": "v"} for rank in range(4)}
        assert job.judge(suspect_of(job, 4), lines(step, values, f"g{step}")) is None
    assert [sorted(job.sets[rank].values()) for rank in range(2)] == [
        [["v"], ["w@0"]],
        [["v"], ["w@1"]],
    ]
    (both,) = job.sets[0].keys() & job.sets[1].keys()
    pair = next(key for key in job.sets[2] if key != both)
    assert job.sets[0] == job.sets[2]
    assert not job.others(0)
    digests = [dict.fromkeys(job.sets[rank], "same") for rank in range(4)]
    tell(job, 8, digests)
    assert job.due(range(4)) is None
    digests[2][pair] = "other"
    tell(job, 9, digests)
    suspect = suspect_of(job, 4)
    assert suspect.sets == {pair}
    values = {rank: {f"w@{rank % 2}": f"w{rank % 2}", "v": "v"} for rank in range(4)}
    values[2] = {"w@0": "other", "v": "v"}
    found = judged(job, suspect, lines(9, values))
    assert (found.tensor, found.ranks, found.others) == ("w@0", [2], [0])


def test_ranks_that_have_nothing_in_common_are_left_alone() -> None:
    job = LiveReplicas()
    for step in range(8):
        tell(job, step, [f"all-{rank}" for rank in range(40)])
        suspect = suspect_of(job, 40)
        assert len(suspect.asked()) == 32
        values = {rank: {f"w@{rank}": f"w{rank}"} for rank in suspect.asked()}
        assert job.judge(suspect, lines(step, values)) is None
    assert job.sets[0] == {"-": ["w@0"]}
    assert (job.sets[39], job.others(39)) == ({}, "-")
    tell(job, 8, [{}] * 40)
    assert job.due(range(40)) is None


def test_the_first_steps_that_not_all_have_seen_are_not_compared() -> None:
    job = LiveReplicas()
    tell(job, 6, ["a", "b"])
    suspect = suspect_of(job, 2)
    sent = lines(6, {0: {"w": "w6"}, 1: {"w": "w6"}})
    early = lines(5, {0: {"w": "w5"}}, before={"w": "w4"}, **GROUPS)
    late = lines(6, {1: {"w": "w6"}}, before={"w": "w5"}, **GROUPS)
    assert job.judge(suspect, {0: early[0] + sent[0], 1: late[1]}) is None
    found = job.judge(suspect, {0: early[0] + sent[0], 1: lines(6, {1: {"w": "x"}})[1]})
    assert found is not None
    assert (found.step, found.tensor) == (6, "w")
