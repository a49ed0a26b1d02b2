"""Conditions of breakpoints as a rank evaluates them: compiled once, else as debugpy does."""

from __future__ import annotations

import sys
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from dap_mux.rank.injected.attach.conditions import compile_once


class Debugger:
    """As much of debugpy's as is replaced; it notes what it is asked itself."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def handle_breakpoint_condition(self, info: object, breakpoint: Any, frame: FrameType) -> bool:
        self.asked.append(breakpoint.condition)
        return bool(breakpoint.handle_hit_condition(frame))


def breakpoint_with(condition: str | None, hits: str | None = None) -> Any:
    counted = lambda frame: hits is not None  # noqa: E731
    return SimpleNamespace(condition=condition, hit_condition=hits, handle_hit_condition=counted)


@pytest.fixture
def debugger() -> Any:
    debugger = Debugger()
    compile_once(debugger)
    compile_once(debugger)
    return debugger


@pytest.mark.parametrize(("condition", "value"), [("loss > 3", True), (" \tloss < 3", False)])
def test_values(debugger: Any, condition: str, value: bool) -> None:
    one, loss = breakpoint_with(condition), 4
    for _ in range(3):
        got = debugger.handle_breakpoint_condition(None, one, sys._getframe())
        assert got is value, loss
    assert debugger.asked == []


@pytest.mark.parametrize("stops", [True, False])
def test_what_raises_stops_or_not_as_debugpy_has_been_told(debugger: Any, stops: bool) -> None:
    """tests/real/debugging/test_single_rank shows that debugpy prints the same."""
    debugger.skip_print_breakpoint_exception = (ZeroDivisionError,)
    debugger.skip_suspend_on_breakpoint_exception = () if stops else (ZeroDivisionError,)
    calls: list[int] = []
    one, info = breakpoint_with("calls.append(1) or 1 / 0"), SimpleNamespace()
    assert debugger.handle_breakpoint_condition(info, one, sys._getframe()) is stops
    assert calls == [1]
    assert debugger.asked == []
    told = getattr(info, "conditional_breakpoint_exception", ("",))[0]
    assert ("ZeroDivisionError: division by zero" in told) is stops


@pytest.mark.parametrize(("condition", "hits"), [("loss >", None), (None, "%2"), ("True", "%2")])
def test_what_only_debugpy_can_do(debugger: Any, condition: str | None, hits: str | None) -> None:
    one = breakpoint_with(condition, hits)
    stops = debugger.handle_breakpoint_condition(None, one, sys._getframe())
    assert (stops, debugger.asked) == (hits is not None, [condition])
