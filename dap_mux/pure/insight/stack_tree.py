"""Merges the stacks of many ranks into prefix trees: ranks in the same frames share a branch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, takewhile
from typing import Any, Final, NamedTuple

from dap_mux.pure.grouping import grouped
from dap_mux.pure.rank_sets import RankId


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
    return max((common(one, other) for one, other in combinations(looks, 2)), key=len, default=())


def common(one: Stack, other: Stack) -> Stack:
    """Return the outermost frames that two stacks share."""
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
    root = _Node()
    for stack, ranks in grouped((stack, rank) for rank, stack in stacks).items():
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


# Stacks of ranks as the response of `stacks`.

Body = dict[str, Any]
Named = Callable[[Iterable[RankId]], str]
MAIN: Final = "MainThread"
_NUMBERS: Final = re.compile(r"\d+")


def stacks_answer(
    threads: Mapping[str, Sequence[tuple[RankId, Stack]]],
    missing: Iterable[tuple[str, Iterable[RankId]]],
    named: Named,
    is_stopped: Callable[[RankId], bool],
) -> Body:
    """Return the response; `threads`: the stacks of each kind of thread, by its name.

    `missing`: messages, with the ranks that did not tell; `named`: ranks as a rank set.
    """
    return {
        "threads": [
            {
                "name": name,
                "ranks": named({rank for rank, _ in stacks}),
                "branches": _answered_branches(merge(stacks), named, is_stopped),
            }
            for name, stacks in sorted(threads.items(), key=lambda one: one[0] != MAIN)
        ],
        "missing": [{"ranks": named(ranks), "message": message} for message, ranks in missing],
    }


def kind_of_thread(name: str) -> str:
    """Return the name that threads share whose own differ only in numbers."""
    return _NUMBERS.sub("#", name)


def _answered_branches(
    branches: Iterable[Branch], named: Named, is_stopped: Callable[[RankId], bool]
) -> list[Body]:
    return [
        {
            "ranks": named(branch.ranks),
            "frames": [frame_body(frame) for frame in branch.frames],
            "ends": named(branch.ends),
            "stopped": named(filter(is_stopped, branch.ends)),
            "branches": _answered_branches(branch.branches, named, is_stopped),
        }
        for branch in branches
    ]


def frame_body(frame: Frame) -> Body:
    """Return a frame as clients are told it."""
    return {
        "path": frame.path,
        "line": frame.line,
        "name": frame.function,
        "library": frame.library,
    }
