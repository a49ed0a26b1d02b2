"""Open calls of the record that ranks of torch keep, as `why` reads them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dap_mux.pure.insight.why.evidence import Collective, RankEvidence, Sample, Thread
from dap_mux.pure.insight.why.verdict import answer
from dap_mux.pure.insight.why.verdicts import judge
from dap_mux.pure.rank_sets import fold
from tests.unit.insight.judging import evidence, named, verdict
from tests.unit.insight.test_verdicts import FILES, FUNCTIONS, LOAD, SLEEP, TRAIN, at

ENGINE = "/usr/lib/python3/site-packages/torch/autograd/graph.py"
OPTIMIZER = "/usr/lib/python3/site-packages/torch/distributed/fsdp/_fully_shard.py"


def calls(
    *known: Collective, path: str = ENGINE, state: str = "S", recorder: str = "on", **of: Any
) -> RankEvidence:
    """A rank at TRAIN, in C of torch's, which keeps a record of its calls."""
    main = Thread("MainThread", True, [TRAIN, (len(FILES), 0, 9)], tid=7, state=state, **of)
    files = [*FILES, (path, True)]
    one = Sample(files, FUNCTIONS, [main], recorder=recorder, world_rank=0, calls=[*known])
    return RankEvidence(("job", 0), samples=[one] * 3)


HERE = "/job/train.py:40 train"
ASIDE = Collective("tp", 7, "send 0->1", p2p=True, state="started", place="/job/train.py:12 warm")
OVER = Collective("dp", 40, "all_reduce", state="completed", place=HERE)
OPEN = Collective("dp", 41, "all_reduce", state="started", age=9.0, place=HERE)


@pytest.mark.parametrize("path", [ENGINE, OPTIMIZER], ids=["backward", "fsdp"])
def test_an_open_call_of_the_line_that_a_rank_sleeps_at(path: str) -> None:
    """An older one, of a line that it has left, goes on beside it."""
    waiting = calls(ASIDE, OVER, OPEN, path=path)
    found = verdict(waiting, waiting, at(LOAD, call=SLEEP))
    assert named(found) == ("not-joined", "2")
    assert found.evidence[0] == "it has not reached all_reduce #41 of group dp"
    assert "wait in all_reduce #41 of group dp at train.py:40 (train) for 9 s" in found.evidence[1]


@pytest.mark.parametrize(
    "other",
    [
        calls(ASIDE, OVER, path=OPTIMIZER),  # its open call is of another line
        calls(OPEN, path=OPTIMIZER, state="R"),  # it computes
        calls(OPEN, path="/job/more.py"),  # the user's own C code
    ],
    ids=["another line", "at work", "not torch's"],
)
def test_an_open_call_alone_keeps_no_rank(other: RankEvidence) -> None:
    assert verdict(other, calls(OPEN), calls(OPEN)).suspects[0].ranks == (("job", 0),)


def test_a_call_that_has_not_returned_is_waited_for() -> None:
    """The frames do not matter; a call open in another thread says nothing of this thread."""
    called = replace(OPEN, kind="monitored_barrier", state="called", tid=7, place="")
    assert verdict(calls(called, path="/x/cpp.py"), at(LOAD, call=SLEEP)).evidence[0] == (
        "it has not reached monitored_barrier #41 of group dp"
    )
    elsewhere = calls(replace(called, tid=8), path="/x/cpp.py")
    assert verdict(elsewhere, at(LOAD, call=SLEEP)).name == "undecided"


def test_what_is_known_is_said_with_its_source() -> None:
    """Where one rank of torch has no record, its numbers are torch's, and no others are used."""

    def told(*ranks: RankEvidence) -> tuple[str, list[str]]:
        found = evidence(*ranks)
        body = answer(judge(found), fold, found)
        return body["suspects"][-1]["waitingFor"], body["evidence"]

    asleep = at(LOAD, call=SLEEP)
    wait, said = told(calls(OPEN), calls(OPEN, recorder="off"), asleep)
    assert wait == "all_reduce #41 of group dp"
    assert said[-1] == "known by the record of open calls of rank set 0-1 (--comm time)"
    wait, said = told(calls(OPEN), calls(OPEN), at(LOAD, call=SLEEP, recorder="on"))
    assert wait == "all_reduce"
    assert "record" not in " ".join(said)
