"""The session's `pathMappings`, applied to each rank."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState, host_of
from dap_mux.pure.pathmap import PathMap, Place, RankPaths, is_windows, parse
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import World

NO_PATHS: Final = RankPaths()
EMPTY_WORLD: Final = World(ranks=(), meshes={}, states={}, names={})
# debugpy keeps the mappings of the attach before if an attach brings none (measured).
IDENTITY: Final[list[Body]] = [{"localRoot": "/", "remoteRoot": "/"}]


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
    """Return the properties of a rank that mappings depend on."""
    endpoint = rank.endpoint
    hosts = (host_of(rank), endpoint.host)
    local, remote = endpoint.traits.copy
    return Place(rank.rank_id, hosts, remote or endpoint.remote_root, cwd, local)


def paths_of(core: SessionState, rank: Rank) -> RankPaths:
    """Return a rank's mappings, with its working folder filled in if it is known."""
    if _has_none(core, rank):
        return NO_PATHS
    return _paths(core, place_of(rank, core.folders.get(rank.rank_id, "")))


def _has_none(core: SessionState, rank: Rank) -> bool:
    """Whether no mapping can apply to a rank: so it is in most sessions."""
    endpoint = rank.endpoint
    return not (core.path_map.entries or endpoint.remote_root or endpoint.traits.copy[1])


def _paths(core: SessionState, place: Place) -> RankPaths:
    by_rank = any(entry.ranks for entry in core.path_map.entries)
    return core.path_map.for_rank(place, core.world() if by_rank else EMPTY_WORLD)


def arguments_for(core: SessionState, rank: Rank, arguments: Body) -> Body:
    """Return a rank's `attach` arguments, with the mappings that apply to it for debugpy."""
    plain = [] if _has_none(core, rank) else _paths(core, place_of(rank)).plain
    if plain:
        core.mapped.add(rank.rank_id)
    elif rank.rank_id in core.mapped:
        plain = IDENTITY
    return {**arguments, "pathMappings": plain} if plain else arguments
