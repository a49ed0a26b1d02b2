"""Merges the stacks of many ranks into prefix trees: ranks in the same frames share a branch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, takewhile
from typing import NamedTuple

from dap_mux.rank_sets import RankId


class Frame(NamedTuple):
    """One call. `path`: as the session names it; `library`: not the program's own code."""

    path: str
    function: str
    line: int
    library: bool = False


Stack = tuple[Frame, ...]
"""The outermost frame comes first."""


@dataclass(frozen=True)
class Branch:
    """Frames that the same ranks share, one inside of the other, and where they part."""

    frames: Stack
    ranks: tuple[RankId, ...]
    ends: tuple[RankId, ...]
    """The ranks whose innermost frame is the last of `frames`."""
    branches: tuple[Branch, ...] = ()


def agreed(looks: Sequence[Stack]) -> Stack:
    """Return the longest beginning that two of several looks at a thread have in common.

    A single look may be torn: it reads the memory of a running process from outside.
    """
    return max((_common(one, other) for one, other in combinations(looks, 2)), key=len, default=())


def _common(one: Stack, other: Stack) -> Stack:
    pairs = zip(one, other, strict=False)
    return tuple(frame for frame, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


@dataclass
class _Node:
    ranks: list[RankId] = field(default_factory=list)
    ends: list[RankId] = field(default_factory=list)
    inside: dict[Frame, _Node] = field(default_factory=dict)


def merge(stacks: Iterable[tuple[RankId, Stack]]) -> tuple[Branch, ...]:
    """Return the branches at the outermost frames, those of most ranks first.

    A rank may have several stacks, of several threads.
    """
    together: dict[Stack, list[RankId]] = {}
    for rank, stack in stacks:
        together.setdefault(stack, []).append(rank)
    root = _Node()
    for stack, ranks in together.items():
        node = root
        for frame in stack:
            node = node.inside.setdefault(frame, _Node())
            node.ranks += ranks
        node.ends += ranks
    return _branches(root.inside)


def _branches(nodes: Mapping[Frame, _Node]) -> tuple[Branch, ...]:
    found = [_branch(frame, node) for frame, node in nodes.items()]
    return tuple(sorted(found, key=lambda one: (-len(one.ranks), one.ranks)))


def _branch(frame: Frame, node: _Node) -> Branch:
    """Follow a frame inwards as long as all of its ranks go on together."""
    frames = [frame]
    while len(node.inside) == 1 and not node.ends:
        ((frame, node),) = node.inside.items()
        frames.append(frame)
    ranks = tuple(sorted(set(node.ranks)))
    return Branch(tuple(frames), ranks, tuple(sorted(set(node.ends))), _branches(node.inside))
