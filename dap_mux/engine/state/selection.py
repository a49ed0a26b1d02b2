"""Selects the ranks of a control request: by a client's focus, a rank's class, the scope.

Nothing is sent from here.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.state.client import Client
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import parse
from dap_mux.pure.rank_sets.world import DebuggeeId

SCOPES: Final = ("auto", "rank", "class", "all")
BACKWARDS: Final = ("stepBack", "reverseContinue")
STEPS: Final = ("next", "stepIn", "stepOut", *BACKWARDS)


def class_of(core: SessionState, rank: Rank) -> list[Rank]:
    """Return the stopped ranks of its group that have the same frames as `rank`."""
    place = rank.stop.frames if rank.stop else None
    if not place:
        return [rank]
    return [other for other in core.sorted_ranks() if _stands(other, rank, place)]


def _stands(other: Rank, rank: Rank, place: object) -> bool:
    return (
        other.id[0] == rank.id[0]
        and other.phase.live
        and other.stop is not None
        and other.stop.frames == place
    )


def targets(
    core: SessionState, client: Client, members: list[Rank], command: str, *, single: bool
) -> list[Rank]:
    """Return the ranks a control request for a row (`members`) acts on.

    `singleThread` means that row only. So does a row other than the focus if the client's dialect
    has no other way to express it; clients of other dialects may name any thread.
    """
    focus = focused(core, client)
    elsewhere = focus is not None and focus not in members
    if single or (elsewhere and client.dialect.means_the_row):
        return members
    mode = _mode(core.scope, command)
    if mode == "rank":
        return members
    if mode == "class":
        return class_of(core, members[0] if focus is None or elsewhere else focus)
    live = core.live_ranks()
    return live if mode == "all" else _of_set(core, mode, live)


def _of_set(core: SessionState, ranks: str, live: list[Rank]) -> list[Rank]:
    """Return the attached ranks of a scope that is a rank set. Raises UsageError for none."""
    named = set(parse(ranks).select(core.world(), strict=False))
    chosen = [rank for rank in live if rank.rank_id in named]
    if not chosen:
        raise UsageError(f"the scope is {ranks}, and none of these ranks is attached")
    return chosen


def _mode(scope: str, command: str) -> str:
    if scope != "auto":
        return scope
    return "class" if command in STEPS else "all"


def focused(core: SessionState, client: Client) -> Rank | None:
    """Return the rank that a client works on, None before it has looked at any."""
    rank = core.ranks.get(client.focus.rank) if client.focus.rank else None
    return rank if rank and rank.phase.live else None


def give_focus(client: Client, rank: DebuggeeId) -> None:
    """Move the focus to a rank whose stop was shown, until the client looks elsewhere."""
    client.focus.rank = rank
    client.focus.explicit = False
    client.focus.beside.clear()


def fallback(core: SessionState, gone: Rank) -> Rank | None:
    """Return the new focus if a rank is gone: the first of its class, else any stopped rank.

    One whose stop has not been announced gets the focus when it is.
    """
    others = (rank for rank in core.live_ranks() if rank is not gone)
    stopped = [rank for rank in others if rank.stop and rank.stop.announced]
    place = gone.stop.frames if gone.stop else None
    same = [rank for rank in stopped if place and _stands(rank, gone, place)]
    return next(iter(same or stopped), None)
