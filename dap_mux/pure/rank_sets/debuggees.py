"""Ids of debuggees: of a rank, or of a worker, which is a process that a rank has started.

A worker's id is its rank's with its number behind it, so that it sorts after its rank and before
the next one. Rank sets know ranks only: a worker is selected with its rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from dap_mux.pure.rank_sets.world import RankId, fold, fold_numbers

WorkerId: TypeAlias = tuple[str, int, int]
"""(group, global rank within the group, number of the worker from 1)."""

DebuggeeId: TypeAlias = RankId | WorkerId


def rank_of(id: DebuggeeId) -> RankId:
    """Return the rank that a worker belongs to; a rank's own id as it is."""
    return id[0], id[1]


def worker_of(id: DebuggeeId) -> int | None:
    """Return a worker's number, None for a rank."""
    return id[2] if len(id) == 3 else None


def label(ids: Iterable[DebuggeeId], default_group: str = "job") -> str:
    """Return `0-3,7` for ranks, `3/1-4` for workers 1 to 4 of rank 3, `0-3, 2/1` for both."""
    ranks: list[RankId] = []
    workers: dict[RankId, list[int]] = {}
    for id in sorted(ids):
        if len(id) == 3:
            workers.setdefault(rank_of(id), []).append(id[2])
        else:
            ranks.append(id)
    same: dict[tuple[str, str], list[RankId]] = {}
    for rank, numbers in workers.items():
        same.setdefault((rank[0], fold_numbers(numbers)), []).append(rank)
    parts = [fold(ranks, default_group)] * bool(ranks)
    several = len({id[0] for id in (*ranks, *workers)}) > 1
    for (group, which), those in same.items():
        parts.append(f"{group}:" * several + f"{fold(those, default_group)}/{which}")
    return ", ".join(parts)
