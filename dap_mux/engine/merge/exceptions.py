"""Exception filters of several clients, each with an optional rank set, for one rank."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from dap_mux.rank_sets import RankId, RankSetError, World, split_prefix

Body: TypeAlias = dict[str, Any]


def exceptions_for(wanted: Iterable[Body], rank: RankId, world: World) -> Body:
    """Return `setExceptionBreakpoints` arguments for one rank: the union of all filters."""
    filters: list[str] = []
    options: list[Body] = []
    rest: Body = {}
    for arguments in wanted:
        filters += [name for name in arguments.get("filters") or [] if name not in filters]
        options += _options(arguments, rank, world)
        rest = {**arguments, **rest}
    rest |= {"filters": filters}
    if "filterOptions" in rest:
        rest["filterOptions"] = options
    return rest


def _options(arguments: Body, rank: RankId, world: World) -> list[Body]:
    chosen = (_option(option, rank, world) for option in arguments.get("filterOptions") or [])
    return [option for option in chosen if option is not None]


def _option(option: Body, rank: RankId, world: World) -> Body | None:
    condition = option.get("condition")
    if not isinstance(condition, str):
        return option
    try:
        prefix = split_prefix(condition)
        if prefix.ranks and rank not in prefix.ranks.select(world, strict=False):
            return None
    except RankSetError:
        return None
    rest = {key: value for key, value in option.items() if key != "condition"}
    return rest | ({"condition": prefix.rest} if prefix.rest else {})
