"""launch.json: the configurations for sessions, and the rank sets and hosts in them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from lsprotocol import types
from pygls.uris import to_fs_path
from tree_sitter import Node

from dap_mux.frontends.lsp.jsonc import Place, Text, items, members, read, said, text_of
from dap_mux.frontends.lsp.server import Positions, Server, diagnostic
from dap_mux.frontends.lsp.session_follower import RankState
from dap_mux.pure.rank_sets import RankSetError, complete, parse
from dap_mux.system.user_files import open_regular

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


# Diagnostics and completions for the rank sets and hosts in launch.json.
#
# All that reads a launch.json runs in a worker thread: one may have megabytes, and other requests
# are answered meanwhile.

# Files that are not encoded in UTF-8: VS Code reads some of them, we write into none.

_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_ADVICE: Final = "so dap-mux cannot add path mappings to it: save it as UTF-8"


@dataclass(frozen=True)
class EncodingProblem:
    """Why a file cannot be read; `line`, 0-based, is the first that is not UTF-8."""

    line: int
    message: str


def encoding_problem(path: str) -> EncodingProblem | None:
    """Return what is wrong with the encoding of a file; None for UTF-8, and without a file."""
    try:
        with open_regular(Path(path)) as file:
            raw = file.read()
    except (OSError, ValueError):
        return None
    name = Path(path).name
    if raw.startswith(_UTF_16) or b"\0" in raw:
        return EncodingProblem(0, f"{name} is encoded in UTF-16, {_ADVICE}")
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start)
        return EncodingProblem(line, f"{name} is not encoded in UTF-8 (line {line + 1}), {_ADVICE}")
    return None


TRIGGERS: Final = ['"', "(", "=", ",", "@", ":", "|", "&", "~"]
GROUPS_TIMEOUT_S: Final = 0.5
MAX_PROBLEMS: Final = 100  # that are published of one file


def check(ls: Server, uri: str) -> None:
    """Publish the diagnostics of a launch.json, soon; ignore other files."""
    if is_launch(to_fs_path(uri) or ""):
        ls.coalescer.run(uri, partial(_check, ls, uri))


async def _check(ls: Server, uri: str) -> None:
    opened = ls.open_document(uri)
    text, version = (opened.source, opened.version) if opened else ("", None)
    problems, encoding = await asyncio.to_thread(_problems, to_fs_path(uri) or "", text)
    now = ls.open_document(uri)
    if (now.source if now else "") != text:
        return  # it has changed since, and is checked again
    found: list[types.Diagnostic] = []
    if now:
        positions, error = Positions(ls, now), types.DiagnosticSeverity.Error
        found += [
            diagnostic(positions.between(one.start, one.end), one.message, error)
            for one in problems
        ]
    if encoding and (now or uri in ls.launch_files_to_mend):
        # The line: its columns depend on how the editor has decoded it.
        start, behind = types.Position(encoding.line, 0), types.Position(encoding.line + 1, 0)
        found.append(diagnostic(types.Range(start, behind), encoding.message))
    ls.publish(uri, found, version)


def _problems(path: str, text: str) -> tuple[list[RankSetProblem], EncodingProblem | None]:
    return list(islice(rank_set_problems(text), MAX_PROBLEMS)), encoding_problem(path)


async def offer(ls: Server, asked: types.CompletionParams) -> types.CompletionList | None:
    """Complete rank sets and hosts."""
    uri = asked.text_document.uri
    if not is_launch(to_fs_path(uri) or ""):
        return None
    document = ls.document(uri)
    if document is None:
        return None
    positions = Positions(ls, document)
    line, column = positions.to_ast(asked.position)
    at, source = (line - 1, column), document.source  # the user may go on typing during the request
    body = await ls.follower.request("groups", {}, GROUPS_TIMEOUT_S) or {"groups": []}
    names = {one["name"]: one["definition"] for one in body["groups"]}
    found = await asyncio.to_thread(completions, source, at, ls.follower.ranks, names)
    offered = [
        types.CompletionItem(
            one.text,
            kind=types.CompletionItemKind.Value,
            detail=one.detail,
            filter_text=one.text,
            sort_text=f"{number:03}",
            text_edit=types.TextEdit(positions.between(one.start, at), one.text),
        )
        for number, one in enumerate(found)
    ]
    return types.CompletionList(is_incomplete=True, items=offered)
