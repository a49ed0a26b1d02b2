"""Ranks that tell their steps: where these differ they are asked, and all stop after the same."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dap_mux.pure.insight.numerics.diverge_against import RecordedRun
from dap_mux.pure.insight.numerics.diverge_trace import RankTrace, Step
from dap_mux.rank.comm.live import Live
from dap_mux.rank.comm.steps import Step as StepOfRank
from tests.engine.conftest import Play
from tests.engine.scenes import attach
from tests.support.fake_rank.injected_calls import injected_call
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client


def called(book: Playbook, rank: int, function: str) -> list[tuple[Any, ...]]:
    """With what a function of the switch was called in a rank."""
    calls = [injected_call(text) for text in book.rank(rank).data.evaluated]
    return [
        call.values for call in calls if call is not None and call[:2] == ("guard_switch", function)
    ]


def watched(play: Play, count: int) -> tuple[Playbook, Client]:
    """Ranks that tell their steps."""
    book, client = play.attached(count)
    client.ask("setExceptionBreakpoints", filters=["diverged"])
    assert [called(book, rank, "switch")[-1] for rank in range(count)] == [
        ("live", True, {})
    ] * count
    return book, client


def step(rank: int, number: int, gradient: str) -> dict[str, Any]:
    """What a rank has had in a step."""
    return {
        "kind": "step", "number": number, "optimizer": "SGD", "place": "train.py:9 f",
        "order": [0, number], "groups": {"head.weight": "0"},
        "gradients": {"head.weight": gradient}, "after": {"head.weight": f"{number}-{rank}"},
    }  # fmt: skip


def end(book: Playbook, number: int, digests: str, *, at: int = 0, gradient: str = "g{}") -> None:
    """All ranks end a step; rank 1 has gone on by the time that it is asked."""
    for rank in range(len(digests)):
        lines = [step(rank, number, gradient.format(rank))]
        book.rank(rank).data.steps = {"at": at + rank, "lines": lines}
    with book.happens():
        for rank, digest in enumerate(digests):
            book.rank(rank).event(
                "dapMuxStep", step=number, order=[0, number], digests={"": digest}
            )
    book.wait(0.2)


def output(client: Client) -> str:
    """What the client is told."""
    return "".join(body["output"] for body in client.of("output"))


def test_all_stop_after_the_last_step_that_one_has_begun(play: Play) -> None:
    """Each is asked once, says where it is, and is told the same step."""
    book, client = watched(play, 2)
    end(book, 2, "aa")
    assert not called(book, 0, "look")
    end(book, 3, "ab", at=4)
    assert [called(book, rank, "look") for rank in range(2)] == [[(3,)], [(3,)]]
    stops = [called(book, rank, "go")[-1] for rank in range(2)]
    text = (
        "step 3, rank 1: the gradient of head.weight differs: it was not exchanged in this step, "
        "at train.py:9 f"
    )
    assert stops == [(5, text, None, "", {"parameter": "head.weight"})] * 2
    (said,) = [body for body in client.of("output") if ": diverged: " in body["output"]]
    assert f"dap-mux: diverged: {text}; ranks stop after step 5; " in said["output"]
    assert (said["source"]["path"], said["line"]) == ("train.py", 9)
    end(book, 4, "ab", at=5)
    assert len(called(book, 0, "look")) == 1


def test_what_differs_by_design_lets_ranks_run_on(play: Play) -> None:
    """Nobody is told; the eighth time, ranks learn to tell no more of it."""
    book, client = watched(play, 2)
    for number in range(8):
        for rank in range(2):
            line = {**step(rank, number, f"g{rank}"), "groups": {}}
            book.rank(rank).data.steps = {"at": number, "lines": [line]}
            book.rank(rank).event(
                "dapMuxStep", step=number, order=[0, number], digests={"": str(rank)}
            )
        book.wait(0.1)
    assert called(book, 0, "go")[-2:] == [
        (-1, "", None, "", {}),
        (-1, "", {"-": ["head.weight"]}, "", {}),
    ]
    assert "diverged" not in output(client)


def test_a_rank_that_dies_while_it_is_asked_holds_nobody(play: Play) -> None:
    """The others run on."""
    book, client = watched(play, 3)
    book.rank(2).data.fails.add("guard_switch")
    book.rank(2).data.steps = {"at": 3, "lines": []}
    end(book, 3, "abb", at=4)
    assert "diverged: step 3, rank 1" in output(client)
    assert called(book, 0, "go")[-1][0] == called(book, 1, "go")[-1][0] == 5


def test_the_first_clients_configuration_asks_for_it(play: Play) -> None:
    """It joins a session that was started without; the next one's is its own."""
    book, client = play.attached(2, catchDiverged=True, catchUnequal="scale", catchNan=True)
    both = {("live", True), ("not_finite", True)}
    for rank in range(2):
        assert {call[:2] for call in called(book, rank, "switch")} == both
    client.ask("disconnect")
    attach(book.client("next"))
    off = {call[:2] for call in called(book, 0, "switch")[2:]}
    assert off == {("live", False), ("not_finite", False)}


@pytest.mark.parametrize("said", [{"step": "many"}, {"digests": {"": 7}}, {"order": [1]}])
def test_steps_that_make_no_sense_or_are_not_asked_for_do_nothing(
    play: Play, said: dict[str, Any]
) -> None:
    """One is dropped with a warning, the other silently."""
    book, client = watched(play, 2)
    whole = {"step": 1, "order": [0, 1], "digests": {"": "a"}}
    book.rank(0).event("dapMuxStep", **{**whole, **said})
    client.ask("setExceptionBreakpoints", filters=[])
    assert called(book, 0, "switch")[-1] == ("live", False, {})
    end(book, 2, "ab")
    assert not called(book, 0, "look")


def test_all_stop_where_a_run_that_was_recorded_had_other_values(play: Play) -> None:
    """Once, though all ranks are alike, and each later step differs as well; and once more after
    they have been started again."""
    traces = [
        RankTrace(rank, [msgspec.convert(step(0, number, "g"), Step) for number in range(6)])
        for rank in range(2)
    ]
    book, client = play.attached(2, settings={"recorded": RecordedRun("before", traces)})
    for number in range(4):
        tell_alike(book, number, parted=number > 1)
    assert called(book, 0, "look") == called(book, 1, "look") == [(2,)]
    text = (
        "step 2, ranks 0-1, other than in before: values differ by the gradient of head.weight in "
        "the SGD step at train.py:9 f"
    )
    assert [called(book, rank, "go")[-1] for rank in range(2)] == [(3, text, None, "", {})] * 2
    (said,) = [each for each in output(client).splitlines() if "diverged" in each]
    assert said.startswith(f"dap-mux: diverged: {text}; ranks stop after step 3; ")
    for rank in range(2):
        book.lose(rank)
    book.wait(1.0)
    tell_alike(book, 2, parted=True)
    assert [called(book, rank, "look")[-1] for rank in range(2)] == [(2,), (2,)]
    assert output(client).count("diverged: step 2") == 2


def tell_alike(book: Playbook, number: int, *, parted: bool) -> None:
    """Both ranks end a step with the same parameters."""
    line = step(0, number, "other" if parted else "g")
    line = {**line, "after": {"head.weight": "other"}} if parted else line
    after = StepOfRank(number, "SGD", "train.py:9 f")
    after.after = line["after"]
    digests, _ = Live()._digests(after)
    for rank in range(2):
        book.rank(rank).data.steps = {"at": number + rank, "lines": [line]}
    with book.happens():
        for rank in range(2):
            book.rank(rank).event("dapMuxStep", step=number, order=[0, number], digests=digests)
    book.wait(0.2)
