"""What logpoints say: the first lines one by one, then the newest once a second."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

import pytest

from dap_mux.rank.injected.attach.conditions import FIRST_LINES, Logpoint, fold_logpoints
from tests.support.processes.waiting import until

MANY: Final = 1_500
MORE: Final = re.compile(r"at (\d+)  \(([\d,]+) more like it in [\d.]+ s\)\n")
A_SECOND: Final = 5.0  # s to wait for the next one of the clock; not a wait


@pytest.fixture
def logpoint() -> Logpoint:
    return Logpoint("'at %s' % (n,)")


def told(logpoint: Logpoint, count: int, now: float) -> int:
    """How many of so many lines at `now` are told at once."""
    return sum(logpoint.is_told(f"at {n}\n", now) for n in range(count))


def test_the_first_lines_are_told_one_by_one(logpoint: Logpoint) -> None:
    assert told(logpoint, MANY, 100.2) == FIRST_LINES
    others = MANY - FIRST_LINES - 1
    assert logpoint.take(101.0) == f"at {MANY - 1}  ({others:,} more like it in 0.8 s)\n"


def test_it_stays_folded_while_the_loop_goes_on(logpoint: Logpoint) -> None:
    told(logpoint, MANY, 100.2)
    logpoint.take(101.0)
    assert told(logpoint, MANY, 101.5) == 0
    assert logpoint.take(102.0) == f"at {MANY - 1}  ({MANY - 1:,} more like it in 1 s)\n"


@pytest.mark.parametrize("count", [1, FIRST_LINES])
def test_what_a_person_can_follow_is_never_folded(logpoint: Logpoint, count: int) -> None:
    assert [told(logpoint, count, second + 0.3) for second in range(100, 105)] == [count] * 5


def test_a_second_in_which_it_says_little_begins_anew(logpoint: Logpoint) -> None:
    told(logpoint, MANY, 100.2)
    logpoint.take(101.0)
    assert told(logpoint, 3, 101.5) == 0
    assert logpoint.take(102.0) == "at 2  (2 more like it in 1 s)\n"
    assert told(logpoint, MANY, 102.5) == FIRST_LINES


def test_a_second_in_which_it_says_nothing_begins_anew(logpoint: Logpoint) -> None:
    told(logpoint, MANY, 100.2)
    logpoint.take(101.0)
    assert told(logpoint, MANY, 102.1) == FIRST_LINES


def test_one_line_that_was_kept_reads_as_any_other(logpoint: Logpoint) -> None:
    told(logpoint, FIRST_LINES + 1, 100.2)
    assert logpoint.take(101.0) == f"at {FIRST_LINES}\n"


def test_lines_that_come_before_the_last_ones_are_told_stay_with_them(logpoint: Logpoint) -> None:
    """The thread that tells them may be late: the program holds the GIL."""
    told(logpoint, MANY, 100.2)
    assert told(logpoint, MANY, 103.2) == 0
    others = 2 * MANY - FIRST_LINES - 1
    assert logpoint.take(103.2) == f"at {MANY - 1}  ({others:,} more like it in 3 s)\n"


def test_a_clock_that_is_put_back(logpoint: Logpoint) -> None:
    told(logpoint, MANY, 100.2)
    assert logpoint.take(50.0).endswith(" more like it in 0.001 s)\n")
    assert told(logpoint, MANY, 50.0) == 0


class Rank:
    """A program at a logpoint, on debugpy's own debugger, as pydevd's trace function calls it."""

    def __init__(self, debugger: Any) -> None:
        self.debugger = debugger
        self.calls: list[str] = []
        json = import_module("_pydevd_bundle.pydevd_net_command_factory_json")
        debugger.cmd_factory = json.NetCommandFactoryJson()
        for name in ("do_wait_suspend", "dispose_and_kill_all_pydevd_threads"):
            setattr(debugger, name, lambda name=name: self.calls.append(name))

    def breakpoint(self, expression: str = "'at %s' % (n,)") -> Any:
        kind = import_module("_pydevd_bundle.pydevd_breakpoints").LineBreakpoint
        return kind(0, 7, None, "f", expression, "ALL", is_logpoint=True)

    def loop(self, count: int, breakpoint: Any = None) -> None:
        breakpoint, info = breakpoint or self.breakpoint(), SimpleNamespace(pydev_message="")
        for n in range(count):
            self.debugger.handle_breakpoint_expression(breakpoint, info, sys._getframe())
            self.say(info.pydev_message + "\n", "1")
            assert n >= 0

    def say(self, text: str, stream: object) -> None:
        command = self.debugger.cmd_factory.make_io_message(text, stream)
        self.debugger.writer.add_command(command)

    @property
    def said(self) -> list[str]:
        return [command.as_dict["body"]["output"] for command in self.debugger.writer.sent]

    @property
    def at(self) -> int:
        """The number in the last line."""
        return int(self.said[-1].split()[1])


@pytest.fixture
def rank(debugger: Any) -> Iterator[Rank]:
    rank = Rank(debugger)
    for _ in range(2):
        fold_logpoints(debugger)
    yield rank
    debugger.dispose_and_kill_all_pydevd_threads()


def counted(lines: list[str]) -> int:
    """How many lines these stand for."""
    more = (MORE.fullmatch(line) for line in lines)
    return sum(1 + int(one[2].replace(",", "")) if one else 1 for one in more)


FIRST: Final = [f"at {n}\n" for n in range(FIRST_LINES)]


async def test_every_line_has_its_place(rank: Rank) -> None:
    """Those too that a thread of ours tells; what the program prints has none."""
    rank.loop(MANY)
    await until(lambda: rank.at == MANY - 1, within=A_SECOND, what="the last value")
    bodies = [command.as_dict["body"] for command in rank.debugger.writer.sent]
    line = Rank.loop.__code__.co_firstlineno + 3
    assert {(one["source"]["path"], one["line"]) for one in bodies} == {(__file__, line)}
    rank.say("printed\n", 1)
    assert not rank.debugger.writer.sent[-1].as_dict["body"].get("source")


async def test_the_last_value_is_told_though_the_loop_is_over(rank: Rank) -> None:
    rank.loop(MANY)
    await until(lambda: rank.at == MANY - 1, within=A_SECOND, what="the last value")
    assert rank.said[:FIRST_LINES] == FIRST
    assert counted(rank.said) == MANY


@pytest.mark.parametrize("what", ["do_wait_suspend", "dispose_and_kill_all_pydevd_threads"])
def test_it_is_told_before_a_stop_and_before_the_end(rank: Rank, what: str) -> None:
    rank.loop(MANY)
    getattr(rank.debugger, what)()
    assert rank.calls == [what]
    assert rank.at == MANY - 1
    assert counted(rank.said) == MANY


def test_what_the_program_prints_is_left_alone(rank: Rank) -> None:
    breakpoint = rank.breakpoint()
    rank.loop(FIRST_LINES, breakpoint)
    for _ in range(MANY):
        rank.say("printed\n", 1)
    assert rank.said == [*FIRST, *["printed\n"] * MANY]


def test_each_logpoint_has_first_lines_of_its_own(rank: Rank) -> None:
    for expression in ("'at %s' % (n,)", "'here'"):
        rank.loop(FIRST_LINES, rank.breakpoint(expression))
    assert rank.said == [*FIRST, *["here\n"] * FIRST_LINES]


def test_once_the_session_has_left_every_line_is_told(rank: Rank) -> None:
    breakpoint = rank.breakpoint()
    rank.loop(MANY, breakpoint)
    rank.debugger.on_disconnect()
    said = rank.said
    rank.debugger.do_wait_suspend()
    assert rank.said == said
    assert rank.at < MANY - 1
    rank.loop(MANY, breakpoint)
    assert len(rank.said) == len(said) + MANY


@pytest.mark.parametrize("expression", ["absent", "1 / 0", "'unbalanced", "  'at %s' % (n,)"])
def test_a_message_is_as_pydevd_makes_it(rank: Rank, expression: str) -> None:
    n, info, usual = 7, SimpleNamespace(), SimpleNamespace()
    breakpoint, frame = rank.breakpoint(expression), sys._getframe()
    rank.debugger.handle_breakpoint_expression(breakpoint, info, frame)
    type(rank.debugger).handle_breakpoint_expression(rank.debugger, breakpoint, usual, frame)
    assert (info.pydev_message, n) == (usual.pydev_message, 7)


async def test_with_the_writer_of_an_adapter_that_was_started_again(rank: Rank) -> None:
    rank.loop(MANY)
    said = rank.said
    rank.debugger.writer = type(rank.debugger.writer)(rank.debugger.writer.sock)
    fold_logpoints(rank.debugger)
    rank.loop(MANY)
    await until(lambda: counted(said + rank.said) == 2 * MANY, within=A_SECOND, what="all is told")
    assert len(rank.said) < MANY
