"""Checks that the rows which the engine keeps for `list` are up to date."""

from __future__ import annotations

from dap_mux.engine.commands.requests.list import entry, new_entry
from dap_mux.engine.engine import Engine


def check_kept_rows(engine: Engine) -> None:
    """Fail where a rank has changed and the engine's parts were not told (`RankMoves`).

    Then consoles that listen to the event `ranks` would not know of it either.
    """
    for rank in engine.core.ranks.values():
        if rank.row is not None and rank.at_barrier is None:
            shown = entry(engine.core, engine.view, rank)
            now = new_entry(engine.core, engine.view, rank)
            assert shown == now, f"{rank.id} has moved unheard: {shown}, now {now}"
