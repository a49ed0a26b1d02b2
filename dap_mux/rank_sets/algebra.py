"""The tree of a rank set: its operators, and the atoms that are a single word.

Nodes compare by meaning: where they stood in the text (`place`) only serves messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

from dap_mux.rank_sets.errors import Place, RankSetError
from dap_mux.rank_sets.world import RankId, World
from dap_mux.suggestions import did_you_mean

_NAMES_DEEP = 8
"""How far named sets may lead to named sets; bounds the recursion."""


@dataclass(frozen=True)
class Scope:
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
        return tuple(sorted(self.members(Scope(world, strict))))

    @abstractmethod
    def members(self, scope: Scope) -> frozenset[RankId]:
        """The ranks of this set in the scope's world."""

    @abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class All(RankSet):
    """Every rank, of one group where one is named."""

    group: str | None
    place: Place = field(compare=False, repr=False)

    def members(self, scope: Scope) -> frozenset[RankId]:
        if self.group is None:
            return frozenset(scope.world.ranks)
        group = scope.group(self.group, self.place)
        return frozenset((group, rank) for rank in scope.world.numbers.get(group, ()))

    def __str__(self) -> str:
        return "all" if self.group is None else f"{self.group}:all"


@dataclass(frozen=True)
class InState(RankSet):
    """The ranks that are in a state now, of one group where one is named."""

    group: str | None
    state: str
    place: Place = field(compare=False, repr=False)

    def members(self, scope: Scope) -> frozenset[RankId]:
        everyone = All(self.group, self.place).members(scope)
        states = scope.world.states
        return frozenset(rank for rank in everyone if states.get(rank) == self.state)

    def __str__(self) -> str:
        return self.state if self.group is None else f"{self.group}:{self.state}"


@dataclass(frozen=True)
class Named(RankSet):
    """The set that the session knows by a name."""

    name: str
    place: Place = field(compare=False, repr=False)

    def members(self, scope: Scope) -> frozenset[RankId]:
        named = scope.world.names.get(self.name)
        if named is None:
            raise RankSetError(f"no set {self}: {self._suggestion(scope)}", self.place)
        if self.name in scope.trail:
            raise RankSetError(f"{self} is defined by itself", self.place)
        if len(scope.trail) == _NAMES_DEEP:
            message = f"{self} is the end of a chain of more than {_NAMES_DEEP} names"
            raise RankSetError(message, self.place)
        return _members(named, replace(scope, trail=(*scope.trail, self.name)))

    def _suggestion(self, scope: Scope) -> str:
        return did_you_mean(f"{self}", (f"@{name}" for name in scope.world.names))

    def __str__(self) -> str:
        return f"@{self.name}"


@dataclass(frozen=True)
class Complement(RankSet):
    """`~a`: every rank of the session that is not in it."""

    inner: RankSet

    def members(self, scope: Scope) -> frozenset[RankId]:
        return frozenset(scope.world.ranks) - _members(self.inner, scope)

    def __str__(self) -> str:
        return f"~{_bracketed(self.inner)}"


@dataclass(frozen=True)
class Union(RankSet):
    """`a | b | ...`: the ranks in any."""

    parts: tuple[RankSet, ...]

    def members(self, scope: Scope) -> frozenset[RankId]:
        return frozenset().union(*_each(self.parts, scope))

    def __str__(self) -> str:
        return " | ".join(map(_bracketed, self.parts))


@dataclass(frozen=True)
class Intersection(RankSet):
    """`a & b & ...`: the ranks in all."""

    parts: tuple[RankSet, ...]

    def members(self, scope: Scope) -> frozenset[RankId]:
        first, *rest = _each(self.parts, scope)
        return first.intersection(*rest)

    def __str__(self) -> str:
        return " & ".join(map(_bracketed, self.parts))


@dataclass(frozen=True)
class Difference(RankSet):
    """`a - b - ...`: the ranks of the first that are in none of the rest."""

    parts: tuple[RankSet, ...]

    def members(self, scope: Scope) -> frozenset[RankId]:
        first, *rest = _each(self.parts, scope)
        return first.difference(*rest)

    def __str__(self) -> str:
        return " - ".join(map(_bracketed, self.parts))


def _each(parts: tuple[RankSet, ...], scope: Scope) -> list[frozenset[RankId]]:
    return [_members(part, scope) for part in parts]


def _members(part: RankSet, scope: Scope) -> frozenset[RankId]:
    """Each set once: a short text may name the same one many times, and names lead to names."""
    if part not in scope.known:
        scope.known[part] = part.members(scope)
    return scope.known[part]


def _bracketed(part: RankSet) -> str:
    """A part's text inside a bigger one: precedence is never left to the reader."""
    return f"({part})" if isinstance(part, (Union, Intersection, Difference)) else str(part)
