"""Stacks of ranks as the response of `stacks`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dap_mux.insight.stack_tree import Branch, Frame, Stack, merge
from dap_mux.rank_sets import RankId

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
                "branches": _branches(merge(stacks), named, is_stopped),
            }
            for name, stacks in sorted(threads.items(), key=lambda one: one[0] != MAIN)
        ],
        "missing": [{"ranks": named(ranks), "message": message} for message, ranks in missing],
    }


def kind_of_thread(name: str) -> str:
    """Return the name that threads share whose own differ only in numbers."""
    return _NUMBERS.sub("#", name)


def _branches(
    branches: Iterable[Branch], named: Named, is_stopped: Callable[[RankId], bool]
) -> list[Body]:
    return [
        {
            "ranks": named(branch.ranks),
            "frames": [frame_body(frame) for frame in branch.frames],
            "ends": named(branch.ends),
            "stopped": named(filter(is_stopped, branch.ends)),
            "branches": _branches(branch.branches, named, is_stopped),
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
