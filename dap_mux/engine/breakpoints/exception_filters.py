"""Exception filters of several clients, each with an optional rank set, for one rank.

debugpy looks at `filters` only where there are no `exceptionOptions`, keeps the last of those
for one exception, and supports neither `filterOptions` nor conditions (read in 1.8.22). So all of
them are converted, for each rank, to arguments that it understands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dap_mux.engine.state.bodies import Body
from dap_mux.rank_sets import RankId, RankSetError, World, split_prefix

# The break mode that equals each filter, and the modes in the order of how often they stop.
MODES: Final = {"raised": "always", "uncaught": "unhandled", "userUnhandled": "userUnhandled"}
STRENGTH: Final = ("never", "unhandled", "userUnhandled", "always")
EVERYTHING: Final = [{"names": ["Python Exceptions"]}]
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
        filters = list(dict.fromkeys(self._names(rank)))
        options = [one for each, _ in self._asked for one in each.get("exceptionOptions") or []]
        if not options:
            return {"filters": filters}
        options += [{"path": EVERYTHING, "breakMode": MODES[f]} for f in filters if f in MODES]
        return {"filters": filters, "exceptionOptions": sorted(options, key=_strength)}

    def _names(self, rank: RankId) -> Iterator[str]:
        for arguments, selections in self._asked:
            yield from arguments.get("filters") or []
            options = arguments.get("filterOptions") or []
            for option, (ranks, problem) in zip(options, selections, strict=True):
                if not problem and (ranks is None or rank in ranks):
                    yield str(option.get("filterId"))


def exceptions_for(requests: Iterable[Body], rank: RankId, world: World) -> Body:
    """Return the arguments for one rank alone."""
    return ExceptionFilters(requests, world).of(rank)


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
