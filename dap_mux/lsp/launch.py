"""launch.json: the configurations that are ours, and the rank sets and hosts in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from dap_mux.lsp.jsonc import Place, Text, end, items, members, read, said, start, text_of
from dap_mux.lsp.picture import Picture
from dap_mux.rank_sets import RankSetError, complete, parse

NAME: Final = "launch.json"
_NOT_RANKS: Final = 'ranks must be a rank set, as in "0-3" or "ranks(dp=0)"'


@dataclass(frozen=True)
class Complaint:
    """What is wrong from one place to another."""

    start: Place
    end: Place
    message: str


@dataclass(frozen=True)
class Offer:
    """`text` may stand from `start` to the cursor; `detail` is for people."""

    text: str
    start: Place
    detail: str


def is_launch(path: str) -> bool:
    """Whether a file holds launch configurations."""
    return path.replace("\\", "/").endswith(f"/.vscode/{NAME}")


def ours(root: Node) -> list[Node]:
    """Return the configurations that lead to a session: of our own type, or debugpy's to attach."""
    return [one for one in items(members(root).get("configurations")) if _is_ours(members(one))]


def _is_ours(configuration: dict[str, Node]) -> bool:
    kind, request = (said(configuration.get(key)) for key in ("type", "request"))
    return kind == "dap-mux" or (kind == "debugpy" and request == "attach")


def complaints(text: str) -> Iterator[Complaint]:
    """Yield what is wrong with the rank sets in a launch.json, at the very columns."""
    for entry in _mappings(read(text)):
        node = entry.get("ranks")
        found = text_of(node)
        if found:
            yield from _complaints(found)
        elif node is not None and not (node.type == "number" and (node.text or b"").isdigit()):
            yield Complaint(start(node), end(node), _NOT_RANKS)


def _complaints(found: Text) -> Iterator[Complaint]:
    try:
        parse(found.value)
    except RankSetError as error:
        last = len(found.value)
        here, there = min(error.column, last), min(error.column + error.width, last)
        yield Complaint(found.places[here], found.places[there], error.message)


def offers(text: str, at: Place, picture: Picture, names: dict[str, str]) -> list[Offer]:
    """Return what may stand at a place; `names`: the session's named sets and what they mean."""
    for entry in _mappings(read(text)):
        ranks = text_of(entry.get("ranks"))
        if ranks and ranks.holds(at):
            found = complete(ranks.value, ranks.column(at), picture.world(names))
            return [Offer(one.text, ranks.places[one.start], one.detail) for one in found]
        hosts = entry.get("hosts")
        for one in (hosts, *items(hosts)):
            host = text_of(one)
            if host and host.holds(at):
                return [Offer(name, host.places[0], "host") for name in picture.hosts()]
    return []


def _mappings(root: Node) -> Iterator[dict[str, Node]]:
    for configuration in ours(root):
        for entry in items(members(configuration).get("pathMappings")):
            yield members(entry)
