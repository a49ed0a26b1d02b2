"""Conditions of barrier breakpoints, on the debugger of a real debugpy: report, and wait."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from types import FrameType, SimpleNamespace
from typing import Any, Final

import pytest

from dap_mux.engine.breakpoints import union
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.rank.injected import comparisons, source_of
from tests.support.processes.waiting import until

LIMIT: Final = 30.0  # s; not a wait
NUMBER: Final = 7


class Reader(SimpleNamespace):
    """As much of the thread that reads as is used."""

    def __init__(self) -> None:
        self.alive = True
        super().__init__(others=[])

    def process_net_command_json(self, debugger: Any, message: bytes) -> None:
        self.others.append(message)

    def is_alive(self) -> bool:
        return self.alive


@pytest.fixture
def rank(debugger: Any) -> Iterator[Any]:
    """A debugger that a session is attached to; another thread may wait in it when a test ends."""
    debugger.reader = Reader()
    debugger._on_configuration_done_event.set()
    for _ in range(2):
        comparisons.compare_in_conditions(debugger, source_of("tensor_summary"))
    yield debugger
    debugger.on_disconnect()


def breakpoint_on(
    compared: str | None, others: str | None = None, *, condition: str = "", hit: str = ""
) -> Any:
    item = Breakpoint(NUMBER, 1, {}, since=NUMBER)
    body = {"condition": condition} | ({"hitCondition": hit} if hit else {})
    text = union.waiting(body, item, compared, others)["condition"]
    import_module("debugpy.server.api")  # which finds the other
    made = import_module("_pydevd_bundle.pydevd_breakpoints").LineBreakpoint
    return made(1, 1, text, "None", "None", hit_condition=hit or None)


class Visit:
    """A thread that comes to a line; `stops` is what its condition says, once it does."""

    def __init__(self, debugger: Any, breakpoint: str | Any, frame: FrameType) -> None:
        self.stops: bool | None = None
        self._debugger, self._frame = debugger, frame
        compares = isinstance(breakpoint, str)
        self._breakpoint = breakpoint_on(breakpoint) if compares else breakpoint
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        evaluate = self._debugger.handle_breakpoint_condition
        self.stops = evaluate(SimpleNamespace(), self._breakpoint, self._frame)

    def ended(self) -> bool:
        self._thread.join(LIMIT)
        assert self.stops is not None
        return self.stops


async def told(debugger: Any, count: int = 1) -> Any:
    """The body of the newest event, once there are so many."""
    sent = debugger.writer.sent
    await until(lambda: len(sent) >= count, within=LIMIT, what=f"event {count}")
    message = json.loads(sent[-1]._as_bytes)
    assert message["event"] == comparisons.HELD
    return message["body"]


def decide(debugger: Any, hold: int, stop: object) -> None:
    event = {"seq": 1, "type": "event", "event": union.DECIDED}
    body = {"hold": hold, "stop": stop}
    message = json.dumps({**event, "body": body}).encode()
    debugger.reader.process_net_command_json(debugger, message)


@pytest.mark.parametrize("stop", [True, False])
async def test_a_value_is_told_and_the_answer_awaited(rank: Any, stop: bool) -> None:
    loss = 2.5
    visit = Visit(rank, "loss * 2", sys._getframe())
    body = await told(rank)
    assert body.pop("line") > 0
    function = "test_a_value_is_told_and_the_answer_awaited"
    expected = {"breakpoint": NUMBER, "hold": 1, "value": str(loss * 2), "function": function}
    assert body == expected
    decide(rank, 0, not stop)  # of another time
    assert visit.stops is None
    decide(rank, 1, stop)
    assert visit.ended() is stop


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("True", "True"),
        ("None", "None"),
        ("'it'", "'it'"),
        ("[1, 2.0]", "[1, 2.0]"),
        ("sum(weight * one for one in (1, 2))", "9"),  # which sees locals
        ("(\n1 +\n1)  # sum", "2"),
        ("tensor", "<a tensor>"),
    ],
)
async def test_values_are_as_debugpy_shows_them(rank: Any, expression: str, value: str) -> None:
    weight, tensor = 3, type("Tensor", (), {"__repr__": lambda _: "<a tensor>"})()
    visit = Visit(rank, expression, sys._getframe())
    assert (await told(rank))["value"] == value, (weight, tensor)
    decide(rank, 1, False)
    assert visit.ended() is False


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("los", "NameError: name 'los' is not defined"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("1 +", "SyntaxError: "),
    ],
)
async def test_what_is_wrong_with_an_expression_is_reported(
    rank: Any, expression: str, problem: str
) -> None:
    visit = Visit(rank, expression, sys._getframe())
    body = await told(rank)
    assert (body["problem"].startswith(problem), body["value"]) == (True, "")
    decide(rank, 1, True)
    assert visit.ended() is True


async def test_a_long_value_is_reported_by_its_digest(rank: Any) -> None:
    values = []
    for number, text in enumerate(("'x' * 70000", "'x' * 70000", "'x' * 69999 + 'y'"), 1):
        visit = Visit(rank, text, sys._getframe())
        values.append((await told(rank, number))["value"])
        decide(rank, number, False)
        assert visit.ended() is False
    assert values[0] == values[1] != values[2]
    assert all(len(value) < 500 for value in values)


async def test_a_barrier_that_compares_nothing(rank: Any) -> None:
    visit = Visit(rank, breakpoint_on(None), sys._getframe())
    assert (await told(rank))["value"] == ""
    decide(rank, 1, True)
    assert visit.ended() is True


@pytest.mark.parametrize(
    ("condition", "others", "stops"),
    [
        ("step == 1", None, False),  # of the barrier: it does not hold
        ("(step == 1) or (step == 7)", "step == 7", True),  # another breakpoint stops the rank
        ("", "True", True),  # ... without a condition
        ("los", None, False),  # it fails, as that of any breakpoint may: debugpy reports it
        ("(step == 2) or (los)", "los", False),
    ],
)
def test_conditions_decide_without_a_wait(
    rank: Any, condition: str, others: str | None, stops: bool
) -> None:
    step = 7
    breakpoint = breakpoint_on(None, others, condition=condition)
    info = SimpleNamespace()
    assert bool(rank.handle_breakpoint_condition(info, breakpoint, sys._getframe())) is stops, step


async def test_it_waits_at_the_count_of_its_hits(rank: Any) -> None:
    breakpoint = breakpoint_on(None, hit="@HIT@ == 2")
    assert not rank.handle_breakpoint_condition(SimpleNamespace(), breakpoint, sys._getframe())
    visit = Visit(rank, breakpoint, sys._getframe())
    await told(rank)
    decide(rank, 1, True)
    assert visit.ended() is True


async def test_two_threads_take_turns(rank: Any) -> None:
    first = Visit(rank, "1", sys._getframe())
    await told(rank)
    second = Visit(rank, "2", sys._getframe())
    decide(rank, 1, False)
    assert first.ended() is False
    assert (await told(rank, 2))["value"] == "2"
    assert second.stops is None
    decide(rank, 2, True)
    assert second.ended() is True


async def test_the_end_of_the_session_frees_all(rank: Any) -> None:
    """Those too that come later, until there is another session."""
    visits = [Visit(rank, "1", sys._getframe())]
    await told(rank)
    visits.append(Visit(rank, "2", sys._getframe()))
    rank.on_disconnect()
    assert [visit.ended() for visit in visits] == [False, False]
    info = SimpleNamespace()
    assert not rank.handle_breakpoint_condition(info, breakpoint_on("1"), sys._getframe())
    assert not rank.handle_breakpoint_condition(info, breakpoint_on("los"), sys._getframe())
    sent = len(rank.writer.sent)
    rank._on_configuration_done_event.set()
    rank.reader = Reader()
    comparisons.compare_in_conditions(rank, "")
    visit = Visit(rank, "1", sys._getframe())
    decide(rank, (await told(rank, sent + 1))["hold"], True)
    assert visit.ended() is True


async def test_a_session_that_is_gone_without_a_word(
    rank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that reads has ended."""
    monkeypatch.setattr(comparisons, "LOOK_AGAIN_S", 0.01)
    visit = Visit(rank, "1", sys._getframe())
    await told(rank)
    rank.reader.alive = False
    assert visit.ended() is False


async def test_nonsense_and_what_is_for_debugpy(rank: Any) -> None:
    visit = Visit(rank, "1", sys._getframe())
    await told(rank)
    for body in (b"{}", b'{"hold": [1]}', b"7"):
        message = b'{"event": "dapMuxDecided", "body": %b}' % body
        rank.reader.process_net_command_json(rank, message)
    rank.reader.process_net_command_json(rank, b"{")
    assert (rank.reader.others, visit.stops) == ([b"{"], None)
    decide(rank, 1, "yes")  # which is not true
    assert visit.ended() is False


def test_a_forked_child_passes(rank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parent's session knows nothing of it."""
    monkeypatch.setattr("os.getpid", lambda: 1)
    info = SimpleNamespace()
    assert not rank.handle_breakpoint_condition(info, breakpoint_on("1"), sys._getframe())


def test_other_conditions_are_debugpys(rank: Any) -> None:
    other = SimpleNamespace(condition="1 + 1", handle_hit_condition=lambda frame: False)
    assert rank.handle_breakpoint_condition(None, other, sys._getframe()) == 2


def test_it_is_true_for_everybody_else() -> None:
    """Where nothing of ours reads the comment, the line stops."""
    assert eval(breakpoint_on("'\\n' + text\n + '#'").condition) is True
    assert eval(breakpoint_on(None, hit="3").condition) is False, "debugpy counts"
