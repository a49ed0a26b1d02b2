"""Several breakpoints on one line of one rank: united into one that does the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from dap_mux.engine.breakpoints.merge import CONDITION, HIT, LOG, PREFIXED, Breakpoint, Spot
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.outputs import ToRank
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.protocol.messages import Body, Event, encode, raw
from dap_mux.pure.protocol.types import DIVERGED, LOCATED, NOT_FINITE
from dap_mux.pure.rank_sets import RankId, RankSetError, World, split_prefix, substitute
from dap_mux.pure.rank_sets.world import DebuggeeId, label, rank_of, worker_of
from dap_mux.pure.remote import MAX_PARSED_CHARS, InjectedSources, call, syntax_problem

# Barrier breakpoints as ranks get them: a condition that waits there for a decision.
#
# The session sends the code for this (`injected.comparisons`) to a rank with its first such
# breakpoint. A rank that cannot have it takes the condition as any other: it stops by itself.

MARK: Final = "  # dap-mux waits "  # as in dap_mux/rank/injected/comparisons.py
DECIDED: Final = "dapMuxDecided"  # the same


def waiting(body: Body, item: Breakpoint, compared: str | None, others: str | None) -> Body:
    """Return a breakpoint as it is sent, with a condition that waits where it holds.

    `compared`: the expression as this rank gets it; `others`: where this holds the rank stops
    without waiting, for another breakpoint is on the line.
    """
    condition = body.get(CONDITION) or ("False" if HIT in body else "True")
    read = msgspec.json.encode((item.since, compared, others)).decode()
    return {**body, CONDITION: f"{condition}{MARK}{read}"}


def waits(body: Body) -> bool:
    """Whether a breakpoint as it is sent has such a condition."""
    return MARK in str(body.get(CONDITION, ""))


def enable(core: SessionState, rank: Rank, then: Callable[[], None]) -> None:
    """Call `then` once the rank has been sent what understands these conditions, and answered.

    Not before: debugpy evaluates in another thread than the one that sets breakpoints, so a busy
    rank had the condition first, and stopped there by itself (12 of 55 runs on a busy machine).
    """
    connection = rank.connection

    def answered(reply: Reply) -> None:
        if not reply.ok and connection.link is not None:
            connection.cannot_wait = True
            name = label([rank.id], core.default_group())
            why = reply.problem.strip().rpartition("\n")[2]
            core.warn("rank", f"stops at barriers by itself: {reply.problem}", rank)
            to_clients.say(core, f"rank {name} stops at barriers by itself: {why}", "important")
            core.touch(rank)
        connection.waits = True
        sends, connection.until_it_waits = connection.until_it_waits, []
        for send in sends:
            send()

    if connection.waits:
        then()
        return
    connection.until_it_waits.append(then)
    if len(connection.until_it_waits) == 1:
        to_ranks.ask(core, rank, "evaluate", _enabling(core.injected), answered)


@lru_cache(maxsize=8)
def _enabling(injected: InjectedSources) -> Raw:
    debugger, summaries = "__import__('pydevd').get_global_debugger()", injected["tensor_summary"]
    function = "compare_in_conditions"
    expression = call(injected["comparisons"], function, debugger, repr(summaries))
    return raw({"expression": expression, "context": "watch"})


def decide(core: SessionState, rank: Rank, hold: int, *, stops: bool) -> None:
    """Let a rank that waits in such a condition stop there, or continue."""
    connection = rank.connection
    if connection.link is not None:
        body = raw({"hold": hold, "stop": stops})
        core.out.append(
            ToRank(connection.link, encode(Event(core.next_seq(connection), DECIDED, body)))
        )


COUNT: Final = "@HIT@"  # debugpy replaces it by how often the breakpoint was reached


class Slot(Struct, frozen=True):
    """One breakpoint as it is sent to a rank, and the breakpoints that it unites."""

    body: Body
    breakpoints: tuple[Breakpoint, ...]


class Plan(Struct, frozen=True, eq=False):
    """The breakpoints sent to a rank for one place, and the refused ones with the reason."""

    slots: tuple[Slot, ...]
    refused: tuple[tuple[Breakpoint, str], ...]


Substitutions: TypeAlias = Mapping[str, object]


class Plans:
    """The plans of ranks for the breakpoints of one place: those that need the same share one.

    Those that select a rank are united line by line: debugpy ignores the column. One that the rank
    has moved counts for the line that it was moved to. They hold as long as neither the breakpoints
    nor the ranks change.
    """

    def __init__(self, breakpoints: Iterable[Breakpoint], world: World) -> None:
        self._items = sorted(breakpoints, key=lambda item: item.since)
        self._plans: dict[object, Plan] = {}
        # In a rank, all others are where they were asked for.
        self._varying = [item for item in self._items if item.states or not item.is_for_all]
        self._chosen = {
            item: item.selection(world) for item in self._varying if not item.is_for_all
        }
        self._uses_values = any(
            "$" in text for item in self._items for text in (*_texts(item.clean), item.compared)
        )

    def of(self, rank: DebuggeeId, values: Callable[[], Substitutions]) -> Plan:
        """Return the plan of a rank, whose substitutions are `values`."""
        spots = tuple(self._spot(item, rank) for item in self._varying)
        known = values() if self._uses_values else {}
        key = (spots, tuple(known.items()))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(
                dict(zip(self._varying, spots, strict=True)), known
            )
        return plan

    def _spot(self, item: Breakpoint, rank: DebuggeeId) -> Spot | None:
        """Return where a rank is to have it, None if it is not."""
        selected = item not in self._chosen or rank_of(rank) in self._chosen[item]
        if item.barrier and worker_of(rank) is not None:
            return None  # ranks wait for each other, and their workers for nobody
        return item.spot_in(rank) if selected and not item.refusal else None

    def _plan(self, varying: dict[Breakpoint, Spot | None], values: Substitutions) -> Plan:
        spots: dict[Spot, list[Breakpoint]] = {}
        for item in self._items:
            spot = varying[item] if item in varying else item.spot_of({})
            if spot is not None:
                spots.setdefault(spot, []).append(item)
        lines = [_SameLine(items, spot[0], values) for spot, items in spots.items()]
        slots = tuple(one.slot for one in lines if one.accepted)
        return Plan(slots, tuple(refusal for one in lines for refusal in one.refused))


def _texts(body: Body) -> list[str]:
    return [body[name] for name in PREFIXED if name in body]


# debugpy keeps only the last of several on a line. It stops where the condition *or* the hit
# condition holds, and evaluates a hit condition that it does not recognise as Python, with `@HIT@`
# replaced by the count (both read in 1.8.22), so breakpoints that stop can be united exactly. A
# logpoint never stops: next to one that stops, or to a logpoint with another condition, the newer
# of the two is refused with a message. So is one next to a barrier where nobody could tell which of
# the two has stopped a rank: debugpy alone knows its counts, and a rank waits at one barrier only.
class _SameLine:
    """All breakpoints on one line of one rank, the oldest first."""

    def __init__(self, items: list[Breakpoint], line: object, values: Substitutions) -> None:
        self._line = line
        self._values = values
        self.accepted: list[tuple[Breakpoint, Body]] = []
        self.refused: list[tuple[Breakpoint, str]] = []
        for item in items:
            body = _substituted(item.clean, values)
            problem = self._problem(item, body) if len(items) > 1 else ""
            if problem:
                self.refused.append((item, problem))
            else:
                self.accepted.append((item, body))

    @property
    def slot(self) -> Slot:
        bodies = [body for _, body in self.accepted]
        body = bodies[0] if len(bodies) == 1 else _united(bodies)
        barrier = next((item for item, _ in self.accepted if item.barrier), None)
        if barrier is not None:
            compared = substitute(barrier.compared, self._values) if barrier.differ else None
            body = waiting(body, barrier, compared, self._stops_without_waiting())
        placed = {**body, "line": self._line} if "line" in body else body
        return Slot(placed, tuple(item for item, _ in self.accepted))

    def _stops_without_waiting(self) -> str | None:
        """Return where the breakpoints that are no barriers stop; None if there is none."""
        others = [body for item, body in self.accepted if not item.barrier]
        if not all(body.get(CONDITION) for body in others):
            return "True"
        return either(CONDITION, others).get(CONDITION)

    def _problem(self, item: Breakpoint, body: Body) -> str:
        """Return why `item` cannot be united with those before it, '' if it can."""
        fault = _fault(body.get(CONDITION, ""))
        if fault:
            return (
                "another breakpoint is on this line, and this condition is not valid Python: "
                f"{fault}"
            )
        if not self.accepted:
            return ""
        first, earlier = self.accepted[0]
        barrier = next((other for other, _ in self.accepted if other.barrier), None)
        if item.barrier and barrier and _meeting(item) != _meeting(barrier):
            return "another barrier is on this line: not set"
        counts = item.barrier != first.barrier and (HIT in body or HIT in earlier)
        if counts or (barrier and not item.barrier and HIT in body):
            return "a barrier and a hit count cannot share a line: not set"
        owner = "your other" if first.client == item.client else "another client's"
        if LOG in body and LOG not in earlier:
            return f"{owner} breakpoint stops on this line, and a logpoint never stops: not set"
        if LOG in earlier and LOG not in body:
            return f"{owner} logpoint is on this line, and a logpoint never stops: not set"
        if LOG in body and _when(body) != _when(earlier):
            return f"{owner} logpoint on this line logs in other cases: not set"
        return ""


def _meeting(item: Breakpoint) -> tuple[object, ...]:
    """Return what makes two barriers the same one."""
    return item.differ, item.compared, item.clean.get(CONDITION), [str(one) for one in item.sets]


def _when(body: Body) -> tuple[str, str]:
    return body.get(CONDITION, ""), body.get(HIT, "")


def _fault(condition: str) -> str:
    """Return what is wrong with a condition: in a union it would break the others too."""
    if len(condition) > MAX_PARSED_CHARS:
        return f"longer than {MAX_PARSED_CHARS:,} characters"
    return syntax_problem(condition.strip() or "0", "eval")


def _substituted(body: Body, values: Substitutions) -> Body:
    texts: Body = {name: substitute(body[name], values) for name in PREFIXED if name in body}
    return {**body, **texts}


def _united(bodies: list[Body]) -> Body:
    merged = {key: value for key, value in bodies[0].items() if key not in PREFIXED}
    if LOG in bodies[0]:
        same: Body = {name: bodies[0][name] for name in (CONDITION, HIT) if name in bodies[0]}
        return {**merged, **same, LOG: "\n".join(_each(body[LOG] for body in bodies))}
    if ("", "") in map(_when, bodies):
        return merged  # no condition wins over a condition
    return merged | either(CONDITION, bodies) | _either_count(bodies)


def either(name: str, bodies: Iterable[Body]) -> Body:
    """Unite the conditions under `name`: two become `(a) or (b)`; {} where there is none."""
    conditions = list(_each(body[name] for body in bodies if body.get(name)))
    if len(conditions) > 1:
        # a comment would hide the closing parenthesis
        ended = (text + "\n" if "#" in text else text for text in conditions)
        return {name: " or ".join(f"({text})" for text in ended)}
    return {name: conditions[0]} if conditions else {}


def _either_count(bodies: list[Body]) -> Body:
    counts = list(_each(body[HIT] for body in bodies if body.get(HIT)))
    return (
        {HIT: counts[0]} if len(counts) == 1 else either(HIT, [{HIT: _counted(c)} for c in counts])
    )


def _counted(text: str) -> str:
    """Return a hit condition as the expression that debugpy makes of it."""
    text = text.strip()
    if text.isdecimal():
        return f"{COUNT} == {text}"
    if text.startswith("%"):
        return f"{COUNT} {text} == 0"
    return f"{COUNT} {text}" if text.startswith(("==", "<", ">")) else text


def _each(texts: Iterable[str]) -> Iterator[str]:
    return iter(dict.fromkeys(texts))


# Exception filters of several clients, each with an optional rank set, for one rank.
#
# debugpy looks at `filters` only where there are no `exceptionOptions`, keeps the last of those
# for one exception, and supports neither `filterOptions` nor conditions (read in 1.8.22). So all of
# them are converted, for each rank, to arguments that it understands.

# The break mode that equals each filter, and the modes in the order of how often they stop.
MODES: Final = {"raised": "always", "uncaught": "unhandled", "userUnhandled": "userUnhandled"}
STRENGTH: Final = ("never", "unhandled", "userUnhandled", "always")
EVERYTHING: Final = [{"names": ["Python Exceptions"]}]
OURS: Final = frozenset({NOT_FINITE, LOCATED, DIVERGED})
NO_CONDITIONS: Final = (
    "debugpy does not support conditions for exceptions; only a rank set is allowed here"
)


class ExceptionFilters:
    """The union of all clients' filters; which ranks an option selects is found out once."""

    def __init__(self, requests: Iterable[Body], world: World) -> None:
        self._asked = [
            (arguments, [_ranks(each, world) for each in arguments.get("filterOptions") or []])
            for arguments in requests
        ]

    def of(self, rank: RankId) -> Body:
        """Return `setExceptionBreakpoints` arguments for one rank."""
        filters = [name for name in dict.fromkeys(self._names(rank)) if name not in OURS]
        options = [one for each, _ in self._asked for one in each.get("exceptionOptions") or []]
        if not options:
            return {"filters": filters}
        options += [{"path": EVERYTHING, "breakMode": MODES[f]} for f in filters if f in MODES]
        return {"filters": filters, "exceptionOptions": sorted(options, key=_strength)}

    def ours(self, rank: RankId) -> frozenset[str]:
        """Return those of our own for one rank."""
        return OURS.intersection(self._names(rank))

    def _names(self, rank: RankId) -> Iterator[str]:
        for arguments, selections in self._asked:
            yield from arguments.get("filters") or []
            options = arguments.get("filterOptions") or []
            for option, (ranks, problem) in zip(options, selections, strict=True):
                if not problem and (ranks is None or rank in ranks):
                    yield str(option.get("filterId"))


def _strength(option: Body) -> int:
    mode = option.get("breakMode")
    return STRENGTH.index(mode) if mode in STRENGTH else 0


def _ranks(option: Body, world: World) -> tuple[set[RankId] | None, str]:
    """Return the ranks that a filter option selects (None: all), and the problem with it."""
    try:
        prefix = split_prefix(str(option.get("condition") or ""))
        if prefix.rest or prefix.barrier:
            return None, NO_CONDITIONS
        return set(prefix.ranks.select(world, strict=False)) if prefix.ranks else None, ""
    except RankSetError as error:
        return None, str(error)


def states_of(arguments: Body, world: World) -> list[Body]:
    """Return the DAP Breakpoints of filters and filter options; [] where there are no options."""
    options = arguments.get("filterOptions") or []
    if not options:
        return []
    problems = [_ranks(option, world)[1] for option in options]
    return [{"verified": True} for _ in arguments.get("filters") or []] + [
        {"verified": not problem, **({"message": problem} if problem else {})}
        for problem in problems
    ]
