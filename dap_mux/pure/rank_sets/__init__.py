"""Rank sets: the one language in which people say which ranks they mean.

Text goes through `tokens` and `grammar` into a tree of frozen nodes (`algebra`). A tree knows no
session: `RankSet.select` holds it against a `World`, a snapshot of the ranks, their states, meshes
and named sets. Every mistake is a `RankSetError` that points at the column.
"""

from __future__ import annotations

from dap_mux.pure.rank_sets.texts import (
    complete,
    parse,
    split_condition,
    split_leading,
    split_prefix,
    substitute,
    with_group,
)
from dap_mux.pure.rank_sets.tokens import RankSetError, UnknownDimension, is_name
from dap_mux.pure.rank_sets.world import STATES, Mesh, RankId, RankSet, World, fold, name_ranks

__all__ = [
    "STATES",
    "Mesh",
    "RankId",
    "RankSet",
    "RankSetError",
    "UnknownDimension",
    "World",
    "complete",
    "fold",
    "is_name",
    "name_ranks",
    "parse",
    "split_condition",
    "split_leading",
    "split_prefix",
    "substitute",
    "with_group",
]
