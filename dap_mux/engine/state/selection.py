"""What a control request acts on: the focus of a client, the class of a rank, the scope.

Selection only: nothing is sent from here.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.state.client import Client
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.rank_sets.debuggees import DebuggeeId

SCOPES: Final = ("auto", "rank", "class", "all")
STEPS: Final = ("next", "stepIn", "stepOut")


def class_of(core: SessionState, rank: Rank) -> list[Rank]:
    """Return the stopped ranks of one group that stand where `rank` stands, in every frame."""
    place = rank.stop.frames if rank.stop else None
    if not place:
        return [rank]
    return [other for other in core.sorted_ranks() if _stands(other, rank, place)]


def _stands(other: Rank, rank: Rank, place: object) -> bool:
    return (
        other.id[0] == rank.id[0]
        and other.phase is Phase.LIVE
        and other.stop is not None
        and other.stop.frames == place
    )


def targets(
    core: SessionState, client: Client, members: list[Rank], command: str, *, single: bool
) -> list[Rank]:
    """Return the ranks a control request for a row (`members`) acts on.

    `singleThread` means that row only, and so does a row that is not the focus where the kind of
    client has no other way to say it. Any other client may name whichever thread it likes.
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
    return [rank for rank in core.sorted_ranks() if rank.phase is Phase.LIVE]


def _mode(scope: str, command: str) -> str:
    if scope != "auto":
        return scope
    return "class" if command in STEPS else "all"


def focused(core: SessionState, client: Client) -> Rank | None:
    """Return the rank a client works on, or None when it has not looked at any."""
    rank = core.ranks.get(client.focus.rank) if client.focus.rank else None
    return rank if rank and rank.phase is Phase.LIVE else None


def looked_at(client: Client, rank: DebuggeeId, *, explicit: bool) -> None:
    """Note what a client asked about: `scopes` and a frame's `evaluate` beat `stackTrace`.

    An editor fetches the stack of each stop by itself: beside the focus that means nothing. Nor
    does a look at the old place that was still under way when the focus was moved.
    """
    by_itself = client.focus.explicit or rank in client.focus.beside
    overtaken = client.focus.held is not None and rank != client.focus.rank
    if (explicit or not by_itself) and not overtaken:
        client.focus.rank = rank
        client.focus.explicit = client.focus.explicit or explicit


def give_focus(client: Client, rank: DebuggeeId) -> None:
    """A stop was shown for this rank: it has the focus until the client looks elsewhere."""
    client.focus.rank = rank
    client.focus.explicit = False
    client.focus.beside.clear()


def fallback(core: SessionState, gone: Rank) -> Rank | None:
    """Return who gets the focus of a rank that is gone: its class's lowest, else any stopped."""
    live = (rank for rank in core.sorted_ranks() if rank.phase is Phase.LIVE and rank is not gone)
    stopped = [rank for rank in live if rank.stop]
    place = gone.stop.frames if gone.stop else None
    same = [rank for rank in stopped if place and _stands(rank, gone, place)]
    return next(iter(same or stopped), None)
