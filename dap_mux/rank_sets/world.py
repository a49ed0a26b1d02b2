"""A snapshot of the session's ranks, and the interface of the rank sets evaluated against it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from dap_mux.rank_sets.errors import Place, RankSetError
from dap_mux.rank_sets.mesh import Mesh
from dap_mux.suggestions import did_you_mean

RankId: TypeAlias = tuple[str, int]
"""(group, global rank within the group)."""

STATES = ("waiting", "connecting", "running", "stopped", "pausing", "lost", "exited")
"""The names of a rank's states, in the order of a rank's life."""


@dataclass(frozen=True)
class World:
    """All known ranks, and their properties that rank sets can use."""

    ranks: tuple[RankId, ...]
    meshes: Mapping[str, Mesh]
    states: Mapping[RankId, str]
    names: Mapping[str, RankSet]
    default_group: str = "job"

    def __contains__(self, rank: RankId) -> bool:
        """Whether it is a known rank."""
        return rank[1] in self.numbers.get(rank[0], ())

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


@dataclass(frozen=True)
class Selection:
    """One selection under way: the world, the named sets that led here, and what has been found."""

    world: World
    strict: bool
    trail: tuple[str, ...] = ()
    known: dict[RankSet, frozenset[RankId]] = field(default_factory=dict, compare=False)

    def group(self, name: str | None, place: Place) -> str:
        """The group that a node means; the caller looks whether it has ranks."""
        groups = self.world.numbers
        if name is None:
            if self.world.home is None:
                several = " or ".join(f"{group}:0" for group in sorted(groups))
                raise RankSetError(f"which group? Write {several}, for example", place)
            return self.world.home
        if name not in groups and self.strict:
            raise RankSetError(f"no group '{name}': {did_you_mean(name, groups)}", place)
        return name


class RankSet(ABC):
    """A set of ranks as the user described it; `str()` is a text that parses back to it."""

    def select(self, world: World, *, strict: bool = True) -> tuple[RankId, ...]:
        """The ranks of the world that are in this set, sorted.

        Raises RankSetError for a rank, group, dimension or name that the world lacks; with
        `strict=False` absent ranks and groups are passed over, for they may yet come.
        """
        return tuple(sorted(self.members(Selection(world, strict))))

    @abstractmethod
    def members(self, selection: Selection) -> frozenset[RankId]:
        """The ranks of this set in the selection's world."""

    @abstractmethod
    def __str__(self) -> str: ...
