"""What a rank set is held against: a snapshot of the session's ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from dap_mux.rank_sets.mesh import Mesh

if TYPE_CHECKING:
    from dap_mux.rank_sets.algebra import RankSet

RankId: TypeAlias = tuple[str, int]
"""(group, global rank within the group)."""

STATES = ("waiting", "connecting", "running", "stopped", "pausing", "lost", "exited")
"""The words for a rank's state, in the order of a rank's life."""


@dataclass(frozen=True)
class World:
    """All known ranks, and what rank sets may say about them."""

    ranks: tuple[RankId, ...]
    meshes: Mapping[str, Mesh]
    states: Mapping[RankId, str]
    names: Mapping[str, RankSet]
    default_group: str = "job"

    @cached_property
    def numbers(self) -> Mapping[str, frozenset[int]]:
        """Each group's ranks."""
        groups: dict[str, set[int]] = {}
        for group, rank in self.ranks:
            groups.setdefault(group, set()).add(rank)
        return {group: frozenset(ranks) for group, ranks in groups.items()}

    @property
    def home(self) -> str | None:
        """The group of plain numbers: the only one, or the default; None if that is absent."""
        if len(self.numbers) == 1:
            return next(iter(self.numbers))
        return self.default_group if self.default_group in self.numbers or not self.ranks else None
