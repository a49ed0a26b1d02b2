"""The look of a rank at itself, without torch: tests/launchers/test_slow.py has one with it."""

from __future__ import annotations

import gc
import time
from typing import Any, Final

import msgspec
import pytest

from dap_mux.engine.job_insight.slow_ranks import BEGIN, TOLD, PaceAnswer
from dap_mux.pure.insight.numerics.pace import Pace
from dap_mux.rank.injected.evidence import module, plain
from dap_mux.rank.injected.evidence.pace import MAX_CHARS, NO_GROUP, Look, told
from dap_mux.session.session import injected_sources

SENT: Final[dict[str, Any]] = injected_sources().all
WITHIN: Final = 30.0  # s; not a wait


def test_a_look_without_torch_says_so_and_leaves_nothing() -> None:
    own = {"module": module, "sent": SENT, "plain": plain}
    callbacks = [*gc.callbacks]

    def answer(expression: str) -> PaceAnswer:
        return msgspec.json.decode(eval(expression, {"own": own}), type=PaceAnswer)

    assert answer(BEGIN).pace is None
    deadline = time.monotonic() + WITHIN
    while (pace := answer(TOLD).pace) is None:
        assert time.monotonic() < deadline
    assert (pace.problem, pace.calls) == (NO_GROUP, [])
    assert gc.callbacks == callbacks


def test_places_and_pauses_are_noted() -> None:
    look = Look(module, SENT)
    look._collects("stop", {})  # of one that had begun before
    look._collects("start", {})
    look._collects("stop", {})
    spot = look._spot(module(SENT, "stacks").walk(False)[0][1])
    assert spot[:2] == (__file__, "test_places_and_pauses_are_noted")
    found = msgspec.convert(look.told(), Pace)
    assert len(found.pauses) == 1
    assert found.processors > 0


def test_an_answer_that_is_too_long_loses_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Look(module, SENT)
    look._samples = [(look.began + at, 0, 0) for at in range(40_000)]
    look._spots[__file__, "f", 1, ""] = 0
    monkeypatch.setattr("dap_mux.rank.injected.evidence.pace._looks", [look])
    text = told(plain)
    assert len(text) <= MAX_CHARS
    assert msgspec.json.decode(text, type=Pace).samples[-1] == (39_999, 0, 0)
