"""The values of `$rank` and the like in one rank's conditions and log messages."""

from __future__ import annotations

from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState, host_of
from dap_mux.engine.state.threads import coords_of


def values_of(core: SessionState, rank: Rank) -> dict[str, object]:
    """Return the substitutions of one rank; the fixed names beat mesh dimensions."""
    world_size = len(core.world().numbers.get(rank.id[0], ()))
    fixed = {"rank": rank.number, "world_size": world_size, "host": host_of(rank)}
    return {**coords_of(core, rank), **fixed}
