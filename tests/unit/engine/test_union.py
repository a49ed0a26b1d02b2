"""Breakpoints that meet on one line of one rank."""

from __future__ import annotations

import itertools
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.engine.breakpoints.merge import Breakpoint, read_breakpoint
from dap_mux.engine.breakpoints.union import (
    NO_CONDITIONS,
    ExceptionFilters,
    Plan,
    Plans,
    states_of,
)
from dap_mux.pure.rank_sets import World

Json = dict[str, Any]
RANK: Final = ("job", 0)
WORLD: Final = World(ranks=(RANK, ("job", 1)), meshes={}, states={}, names={}, default_group="job")


def plan(items: list[Breakpoint]) -> Plan:
    """What rank 0 is sent for these."""
    return Plans(items, WORLD).of(RANK, dict)


def planned(*bodies: Json) -> Plan:
    """What rank 0 is sent when as many clients want these on line 6, in this order."""
    return plan(wanted(bodies))


def wanted(bodies: tuple[Json, ...]) -> list[Breakpoint]:
    return [read_breakpoint(n, n, {"line": 6, **body}, WORLD) for n, body in enumerate(bodies, 1)]


def sent(*bodies: Json) -> Json:
    """The one breakpoint that they become, without its line."""
    (slot,) = planned(*bodies).slots
    return {key: value for key, value in slot.body.items() if key != "line"}


def refusals(*bodies: Json) -> list[tuple[int, str]]:
    """Whose breakpoint is refused, and why."""
    return [(item.client, reason) for item, reason in planned(*bodies).refused]


STOPS: Final = [
    ([{"condition": "a"}], {"condition": "a"}),
    ([{"condition": "a"}, {}], {}),
    ([{"condition": " "}], {}),
    (
        [{"condition": "barrier: ", "mode": "together"}],
        {"condition": "True  # dap-mux waits [1,null,null]"},
    ),
    (
        [{"condition": "a"}, {"condition": "barrier: b"}],
        {"condition": '(a) or (b)  # dap-mux waits [2,null,"a"]'},
    ),
    (
        [{}, {"condition": "differ: loss"}],
        {"condition": 'True  # dap-mux waits [2,"loss","True"]'},
    ),
    ([{"logMessage": " "}], {"logMessage": " "}),
    ([{"hitCondition": "3"}, {}], {}),
    ([{"condition": "a"}, {"condition": "b"}], {"condition": "(a) or (b)"}),
    ([{"condition": "a"}, {"condition": "a"}], {"condition": "a"}),
    ([{"condition": "a # x"}, {"condition": "b"}], {"condition": "(a # x\n) or (b)"}),
    ([{"condition": "a"}, {"hitCondition": "3"}], {"condition": "a", "hitCondition": "3"}),
    (
        [{"hitCondition": "3"}, {"hitCondition": "% 4"}, {"hitCondition": " >= 9"}],
        {"hitCondition": "(@HIT@ == 3) or (@HIT@ % 4 == 0) or (@HIT@ >= 9)"},
    ),
    ([{"hitCondition": "3"}, {"hitCondition": "3"}], {"hitCondition": "3"}),
    (
        [{"condition": "a", "hitCondition": "3"}, {"condition": "b"}],
        {"condition": "(a) or (b)", "hitCondition": "3"},
    ),
]


@pytest.mark.parametrize(("bodies", "expected"), STOPS)
def test_stops_unite(bodies: list[Json], expected: Json) -> None:
    assert sent(*bodies) == expected
    assert refusals(*bodies) == []


def stops(body: Json, count: int, values: Json) -> bool:
    """What debugpy does with a breakpoint that is reached for the `count`th time (1.8.22)."""
    condition, hit = body.get("condition"), body.get("hitCondition")
    if not condition and not hit:
        return True
    counted = False
    if hit:
        text = hit.strip()
        if text.isdecimal():
            text = f"@HIT@ == {text}"
        elif text.startswith("%"):
            text = f"@HIT@ {text} == 0"
        elif text.startswith(("==", ">", "<")):
            text = f"@HIT@ {text}"
        counted = bool(eval(text.replace("@HIT@", str(count)), {}, values))
    return counted or bool(condition and eval(condition, {}, values))


CONDITIONS: Final = st.sampled_from(["x", "y", "x and y", "not x # why", "x if y else not x", ""])
HITS: Final = st.sampled_from(["2", "%3", ">4", "== 5", "@HIT@ in (1, 6)", ""])
BODY: Final = st.builds(lambda c, h: {"condition": c, "hitCondition": h}, CONDITIONS, HITS)


@given(st.lists(BODY, min_size=1, max_size=4))
def test_the_union_stops_exactly_where_one_of_them_would(bodies: list[Json]) -> None:
    clean = [{key: text for key, text in body.items() if text} for body in bodies]
    united = sent(*clean)
    for count, x, y in itertools.product(range(1, 8), (False, True), (False, True)):
        values = {"x": x, "y": y}
        expected = any(stops(body, count, values) for body in clean)
        assert stops(united, count, values) == expected


LOG: Final = {"logMessage": "at {x}"}


def test_logpoints_unite_where_they_log_in_the_same_cases() -> None:
    both = sent(LOG, {"logMessage": "y={y}"}, LOG)
    assert both == {"logMessage": "at {x}\ny={y}"}
    cases = {"condition": "x", "hitCondition": "3"}
    assert sent({**LOG, **cases}, {"logMessage": "b", **cases}) == {
        "logMessage": "at {x}\nb",
        **cases,
    }


@pytest.mark.parametrize(
    ("first", "later", "reason"),
    [
        ({}, LOG, "another client's breakpoint stops on this line"),
        (LOG, {}, "another client's logpoint is on this line"),
        (LOG, {"hitCondition": "3"}, "another client's logpoint is on this line"),
        (LOG, {**LOG, "condition": "x"}, "another client's logpoint on this line logs in other"),
    ],
)
def test_the_later_of_two_that_cannot_meet_is_refused(
    first: Json, later: Json, reason: str
) -> None:
    assert sent(first, later) == first
    ((client, why),) = refusals(first, later)
    assert client == 2
    assert why.startswith(reason)


def test_who_was_there_first_stays_when_it_is_sent_again() -> None:
    """Editors send all breakpoints of a file again with each change: that makes none later."""
    stop, log = wanted(({}, LOG))
    again = read_breakpoint(9, 1, {"line": 6, "condition": "x"}, WORLD)
    assert again.succeeds(stop)
    assert not again.succeeds(log)
    again.since = stop.since
    refused = plan([log, again]).refused
    assert [item for item, _ in refused] == [log]


@pytest.mark.parametrize("bad", ["x ==", "x)", "x; y", "(" * 300])
def test_a_condition_that_is_no_python_spoils_nobody_elses(bad: str) -> None:
    """Alone it goes to debugpy, which says so at each hit; in a union both would be lost."""
    assert sent({"condition": bad}) == {"condition": bad}
    assert sent({"condition": bad}, {"condition": "y"}) == {"condition": "y"}
    assert sent({"condition": "y"}, {"condition": bad}) == {"condition": "y"}
    ((client, why),) = refusals({"condition": "y"}, {"condition": bad})
    assert client == 2
    assert "is not valid Python" in why


def test_the_clients_own_other_breakpoint_is_called_so() -> None:
    items = [
        read_breakpoint(1, 1, {"line": 6}, WORLD),
        read_breakpoint(2, 1, {"line": 6, "column": 4, **LOG}, WORLD),
    ]
    ((_, why),) = plan(items).refused
    assert why.startswith("your other breakpoint stops")


def test_other_lines_other_functions_and_other_ranks_do_not_meet() -> None:
    bodies: list[Json] = [{"line": 6}, {"line": 7}, {"line": 6, "logMessage": "ranks(1): x"}]
    items = [read_breakpoint(n, n, body, WORLD) for n, body in enumerate(bodies, 1)]
    assert [slot.body for slot in plan(items).slots] == bodies[:2]
    functions = [read_breakpoint(n, n, {"name": name}, WORLD) for n, name in enumerate("fgf", 1)]
    assert [slot.body for slot in plan(functions).slots] == [
        {"name": "f"},
        {"name": "g"},
    ]


def test_two_that_the_rank_has_moved_onto_one_line_meet() -> None:
    items = [
        read_breakpoint(1, 1, {"line": 5, "condition": "a"}, WORLD),
        *wanted(({"condition": "b"},)),
    ]
    items[1].since = 2
    assert len(plan(items).slots) == 2
    items[0].states[RANK] = {"verified": True, "line": 6}
    (slot,) = plan(items).slots
    assert slot.body == {"line": 6, "condition": "(a) or (b)"}
    assert slot.breakpoints == tuple(items)


# Exceptions


def test_options_take_the_filters_in_and_the_strongest_of_one_exception_comes_last() -> None:
    """debugpy looks at filters only without options, and keeps the last for one exception."""
    path = [{"names": ["Python Exceptions"]}, {"names": ["ValueError"]}]
    always = {"path": path, "breakMode": "always"}
    unhandled = {"path": path, "breakMode": "unhandled"}
    first = {"filters": [], "exceptionOptions": [always]}
    second = {"filters": ["uncaught"], "exceptionOptions": [unhandled]}
    united = ExceptionFilters([first, second], WORLD).of(RANK)
    everything = {"path": path[:1], "breakMode": "unhandled"}
    assert united["exceptionOptions"] == [unhandled, everything, always]


def test_a_filter_option_is_a_filter_where_its_rank_set_holds() -> None:
    options = [{"filterId": "raised", "condition": "ranks(1):"}, {"filterId": "uncaught"}]
    asked = {"filters": [], "filterOptions": options}
    assert ExceptionFilters([asked], WORLD).of(RANK) == {"filters": ["uncaught"]}
    assert ExceptionFilters([asked], WORLD).of(("job", 1)) == {"filters": ["raised", "uncaught"]}
    assert states_of(asked, WORLD) == [{"verified": True}] * 2


@pytest.mark.parametrize(
    ("condition", "message"), [("x > 1", NO_CONDITIONS), ("ranks(1: x", "never closed")]
)
def test_a_filter_option_that_cannot_be_kept_says_so(condition: str, message: str) -> None:
    option = {"filterId": "raised", "condition": condition}
    asked = {"filters": ["uncaught"], "filterOptions": [option]}
    assert ExceptionFilters([asked], WORLD).of(RANK) == {"filters": ["uncaught"]}
    plain, refused = states_of(asked, WORLD)
    assert plain == {"verified": True}
    assert not refused["verified"]
    assert message in refused["message"]


OTHER: Final = ("job", 1)


def plans_of(*bodies: Json) -> tuple[Plan, Plan]:
    """The plans of both ranks, for breakpoints of one client."""
    items = [read_breakpoint(n, 1, {"line": n, **body}, WORLD) for n, body in enumerate(bodies, 1)]
    plans = Plans(items, WORLD)
    return plans.of(RANK, lambda: {"rank": 0}), plans.of(OTHER, lambda: {"rank": 1})


def test_ranks_that_need_the_same_share_one_plan() -> None:
    one, other = plans_of({}, {"condition": "loss > 3"})
    assert one is other


@pytest.mark.parametrize("condition", ["$rank == 0", "ranks(1): loss > 3"])
def test_ranks_that_need_something_else_do_not(condition: str) -> None:
    one, other = plans_of({}, {"condition": condition})
    assert one is not other
    assert [slot.body for slot in one.slots] != [slot.body for slot in other.slots]


def test_a_breakpoint_that_one_rank_has_moved_is_sent_there_with_its_line() -> None:
    item = read_breakpoint(1, 1, {"line": 6}, WORLD)
    item.states[OTHER] = {"verified": True, "line": 7}
    plans = Plans([item], WORLD)
    lines = [plans.of(rank, dict).slots[0].body["line"] for rank in (RANK, OTHER)]
    assert lines == [6, 7]
