"""The tree of a rank set: its operators, and the atoms that are a single name.

Nodes compare by meaning: their place in the text (`place`) only serves messages.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from msgspec.structs import replace

from dap_mux.rank_sets.errors import Place, RankSetError
from dap_mux.rank_sets.world import RankId, RankSet, Selection
from dap_mux.suggestions import did_you_mean

Members: TypeAlias = frozenset[RankId]

MAX_NAMED_SET_DEPTH = 8
"""Named sets may refer to named sets this many times over; bounds the recursion."""


@dataclass(frozen=True)
class All(RankSet):
    """Every rank, of one group where one is named."""

    group: str | None
    place: Place = field(compare=False, repr=False)

    def members(self, selection: Selection) -> frozenset[RankId]:
        if self.group is None:
            return frozenset(selection.world.ranks)
        group = selection.group(self.group, self.place)
        return frozenset((group, rank) for rank in selection.world.named.get(group, ()))

    def __str__(self) -> str:
        return "all" if self.group is None else f"{self.group}:all"


@dataclass(frozen=True)
class InState(RankSet):
    """The ranks that are in a state now, of one group where one is named."""

    group: str | None
    state: str
    place: Place = field(compare=False, repr=False)

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        return True

    def members(self, selection: Selection) -> frozenset[RankId]:
        everyone = All(self.group, self.place).members(selection)
        states = selection.world.states
        ranks = selection.world.themselves(everyone)
        return frozenset(rank for rank in ranks if states.get(rank) == self.state)

    def __str__(self) -> str:
        return self.state if self.group is None else f"{self.group}:{self.state}"


@dataclass(frozen=True)
class Named(RankSet):
    """The set that the session knows by a name."""

    name: str
    place: Place = field(compare=False, repr=False)

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        named = names.get(self.name)
        if named is None or self.name in seen:
            return False  # without the name it has no members at any time
        if len(seen) == MAX_NAMED_SET_DEPTH:
            return True
        seen.add(self.name)
        return named.varies_in(names, seen)

    def members(self, selection: Selection) -> frozenset[RankId]:
        named = selection.world.names.get(self.name)
        if named is None:
            raise RankSetError(f"no set {self}: {self._suggestion(selection)}", self.place)
        if self.name in selection.trail:
            raise RankSetError(f"{self} is defined in terms of itself", self.place)
        if len(selection.trail) == MAX_NAMED_SET_DEPTH:
            message = f"{self} is the end of a chain of more than {MAX_NAMED_SET_DEPTH} names"
            raise RankSetError(message, self.place)
        return _members(named, replace(selection, trail=(*selection.trail, self.name)))

    def _suggestion(self, selection: Selection) -> str:
        return did_you_mean(f"{self}", (f"@{name}" for name in selection.world.names))

    def __str__(self) -> str:
        return f"@{self.name}"


@dataclass(frozen=True)
class Complement(RankSet):
    """`~a`: every rank of the session that is not in it."""

    inner: RankSet

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        return self.inner.varies_in(names, seen)

    def members(self, selection: Selection) -> frozenset[RankId]:
        return frozenset(selection.world.ranks) - _members(self.inner, selection)

    def __str__(self) -> str:
        return f"~{_bracketed(self.inner)}"


@dataclass(frozen=True)
class _Combination(RankSet):
    parts: tuple[RankSet, ...]
    sign: ClassVar[str]

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        return any(part.varies_in(names, seen) for part in self.parts)

    def members(self, selection: Selection) -> frozenset[RankId]:
        return self.combined(*(_members(part, selection) for part in self.parts))

    @abstractmethod
    def combined(self, first: Members, *rest: Members) -> Members: ...

    def __str__(self) -> str:
        return f" {self.sign} ".join(map(_bracketed, self.parts))


class Union(_Combination):
    """`a | b | ...`: the ranks in any."""

    sign = "|"

    def combined(self, first: Members, *rest: Members) -> Members:
        return first.union(*rest)


class Intersection(_Combination):
    """`a & b & ...`: the ranks in all."""

    sign = "&"

    def combined(self, first: Members, *rest: Members) -> Members:
        return first.intersection(*rest)


class Difference(_Combination):
    """`a - b - ...`: the ranks of the first that are in none of the rest."""

    sign = "-"

    def combined(self, first: Members, *rest: Members) -> Members:
        return first.difference(*rest)


def _members(part: RankSet, selection: Selection) -> frozenset[RankId]:
    """Each set once: a short text may name the same one many times, and names lead to names."""
    if part not in selection.known:
        selection.known[part] = selection.world.themselves(part.members(selection))
    return selection.known[part]


def _bracketed(part: RankSet) -> str:
    """A part's text inside a bigger one: precedence is never left to the reader."""
    return f"({part})" if isinstance(part, _Combination) else str(part)
