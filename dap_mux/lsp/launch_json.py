"""launch.json: the configurations for sessions, and the rank sets and hosts in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from dap_mux.lsp.jsonc import Place, Text, items, members, read, said, text_of
from dap_mux.lsp.rank_state import RankState
from dap_mux.rank_sets import RankSetError, complete, parse

NAME: Final = "launch.json"
_NOT_A_RANK_SET: Final = 'ranks must be a rank set, as in "0-3" or "ranks(dp=0)"'


@dataclass(frozen=True)
class RankSetProblem:
    """A problem with the text from `start` to `end`."""

    start: Place
    end: Place
    message: str


@dataclass(frozen=True)
class LaunchCompletion:
    """A completion that replaces the text from `start` to the cursor."""

    text: str
    start: Place
    detail: str


def is_launch(path: str) -> bool:
    """Whether a path is that of a launch.json."""
    return path.replace("\\", "/").endswith(f"/.vscode/{NAME}")


def ours(root: Node) -> list[Node]:
    """Return the configurations for sessions: of our type, or debugpy's with `attach`."""
    return [one for one in items(members(root).get("configurations")) if _is_ours(members(one))]


def _is_ours(configuration: dict[str, Node]) -> bool:
    kind, request = (said(configuration.get(key)) for key in ("type", "request"))
    return kind == "dap-mux" or (kind == "debugpy" and request == "attach")


def rank_set_problems(text: str) -> Iterator[RankSetProblem]:
    """Yield the problems with the rank sets in a launch.json."""
    for entry in _mappings(read(text)):
        node = entry.get("ranks")
        found = text_of(node)
        if found:
            yield from _complaints(found)
        elif node is not None and not (node.type == "number" and (node.text or b"").isdigit()):
            yield RankSetProblem(node.start_point, node.end_point, _NOT_A_RANK_SET)


def _complaints(found: Text) -> Iterator[RankSetProblem]:
    try:
        parse(found.value)
    except RankSetError as error:
        last = len(found.value)
        here, there = min(error.column, last), min(error.column + error.width, last)
        yield RankSetProblem(found.places[here], found.places[there], error.message)


def completions(
    text: str, at: Place, state: RankState, names: dict[str, str]
) -> list[LaunchCompletion]:
    """Return the completions at a place; `names`: the session's named sets, with definitions."""
    for entry in _mappings(read(text)):
        ranks = text_of(entry.get("ranks"))
        if ranks and ranks.holds(at):
            found = complete(ranks.value, ranks.column(at), state.world(names))
            return [
                LaunchCompletion(one.text, ranks.places[one.start], one.detail) for one in found
            ]
        hosts = entry.get("hosts")
        for one in (hosts, *items(hosts)):
            host = text_of(one)
            if host and host.holds(at):
                return [LaunchCompletion(name, host.places[0], "host") for name in state.hosts()]
    return []


def _mappings(root: Node) -> Iterator[dict[str, Node]]:
    for configuration in ours(root):
        for entry in items(members(configuration).get("pathMappings")):
            yield members(entry)
