"""Parsing of rank sets and layouts, imported when the first one is parsed.

An editor waits for its adapter to start, and most sessions are told of no rank set before their
ranks run. What reads one is most of this package, so it is imported here, by each function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dap_mux.pure.rank_sets.prefix import Completion, Prefix
    from dap_mux.pure.rank_sets.world import RankSet, World


def parse(text: str) -> RankSet:
    """Read a whole text as a rank set. Raises RankSetError at the first wrong token."""
    from dap_mux.pure.rank_sets import grammar

    return grammar.parse(text)


def split_leading(text: str) -> tuple[str, str]:
    """Return the rank set at the head of a text and the command behind it (`prefix`)."""
    from dap_mux.pure.rank_sets import prefix

    return prefix.split_leading(text)


def with_group(text: str) -> str:
    """Write Monarch's `debugee ranks(3)` and `debugee 13` as the grammar does (`prefix`)."""
    from dap_mux.pure.rank_sets import prefix

    return prefix.with_group(text)


def split_prefix(text: str) -> Prefix:
    """Take `ranks(tp=0): loss > 3` apart (`prefix`). Raises RankSetError."""
    from dap_mux.pure.rank_sets import prefix

    return prefix.split_prefix(text)


def split_condition(text: str) -> Prefix:
    """Take `ranks(tp=0) differ(dp): loss` apart, too (`prefix`). Raises RankSetError."""
    from dap_mux.pure.rank_sets import prefix

    return prefix.split_condition(text)


def substitute(text: str, values: Mapping[str, object]) -> str:
    """Replace `$rank`, `$world_size`, `$host`, `$<dim>` by a rank's values (`prefix`)."""
    from dap_mux.pure.rank_sets import prefix

    return prefix.substitute(text, values)


def complete(text: str, column: int, world: World) -> tuple[Completion, ...]:
    """Return the completions at `column` (0-based) of a rank set, likeliest first."""
    from dap_mux.pure.rank_sets import prefix

    return prefix.complete(text, column, world)
