"""The session's `pathMappings`, as they hold for each rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState, host_of
from dap_mux.pathmap import PathMap, Place, RankPaths, is_windows, parse
from dap_mux.rank_sets import World

NOBODY: Final = World(ranks=(), meshes={}, states={}, names={})
# debugpy keeps the mappings of the attach before where an attach brings none (measured).
ITSELF: Final[list[Body]] = [{"localRoot": "/", "remoteRoot": "/"}]


def mappings_of(arguments: Body, folder: str) -> PathMap:
    """Read the `pathMappings` of attach arguments. Raises `BadMapping`.

    `folder` stands for a workspace that the client does not name (`cwd`).
    """
    written = arguments.get("pathMappings")
    for own in (arguments.get("workspaceFolder"), arguments.get("cwd")):
        if isinstance(own, str) and (own.startswith("/") or is_windows(own)):
            return parse(written, own)
    return replace(parse(written, folder), guessed=True)


def place_of(rank: Rank, cwd: str = "") -> Place:
    """Return what mappings ask of a rank."""
    endpoint = rank.endpoint
    return Place(rank.rank_id, (host_of(rank), endpoint.host), endpoint.remote_root, cwd)


def paths_of(core: SessionState, rank: Rank) -> RankPaths:
    """Return a rank's mappings, its working folder filled in where it is known."""
    return _paths(core, place_of(rank, core.folders.get(rank.rank_id, "")))


def _paths(core: SessionState, place: Place) -> RankPaths:
    entries = core.path_map.entries
    if not entries and not place.remote_root:
        return RankPaths()
    by_rank = any(entry.ranks for entry in entries)
    return core.path_map.for_rank(place, core.world() if by_rank else NOBODY)


def arguments_for(core: SessionState, rank: Rank, arguments: Body) -> Body:
    """Return a rank's `attach` arguments: with its own plain mappings, as debugpy takes them."""
    plain = _paths(core, place_of(rank)).plain
    if plain:
        core.mapped.add(rank.rank_id)
    elif rank.rank_id in core.mapped:
        plain = ITSELF
    return {**arguments, "pathMappings": plain} if plain else arguments
