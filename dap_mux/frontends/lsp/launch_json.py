"""launch.json while it is edited: the configurations for sessions, and rank sets in them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

import tree_sitter_json
from lsprotocol import types
from pygls.uris import to_fs_path
from tree_sitter import Language, Node, Parser

from dap_mux.frontends.lsp.server import Positions, Server, diagnostic
from dap_mux.frontends.lsp.session_follower import RankState
from dap_mux.pure.rank_sets import RankSetError, complete, parse
from dap_mux.system.user_files import open_regular

# JSON with comments while it is edited: values with their locations, and edits that add to it.
#
# Edits only insert or replace values, so comments and layout stay as they are. Incomplete text is
# parsed as far as possible, and trailing commas are allowed.

Place: TypeAlias = tuple[int, int]
"""Line and column, both 0-based; the column in bytes of UTF-8."""

_PARSER: Final = Parser(Language(tree_sitter_json.language()))
_NO_VALUE: Final = frozenset({"comment", "ERROR", "{", "}", "[", "]", ",", ":", '"'})
_PIECE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.",
    re.DOTALL,
)


@dataclass(frozen=True)
class Edit:
    """Replace the range from `start` to `end` with `text`."""

    start: Place
    end: Place
    text: str


@dataclass(frozen=True)
class Text:
    """A string's value, and the location of each of its characters and of its end."""

    value: str
    places: tuple[Place, ...]

    def holds(self, place: Place) -> bool:
        """Whether a cursor is in the string."""
        return self.places[0] <= place <= self.places[-1]

    def column(self, place: Place) -> int:
        """Return the number of characters before a cursor."""
        return sum(one < place for one in self.places[:-1])


def read(text: str) -> Node:
    """Parse a document and return its value, normally an object."""
    root = _PARSER.parse(text.encode()).root_node
    return next(_values(root), root)


def members(node: Node | None) -> dict[str, Node]:
    """Return an object's values by name; {} for other nodes."""
    found: dict[str, Node] = {}
    for pair in _elements(node, "object"):
        name, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if name is not None and value is not None:
            found[said(name)] = value
    return found


def items(node: Node | None) -> list[Node]:
    """Return an array's values; [] for other nodes."""
    return _elements(node, "array")


def said(node: Node | None) -> str:
    """Return a string's value; "" for other nodes."""
    if node is None or node.type != "string" or node.text is None:
        return ""
    raw = node.text[1:-1]
    if b"\\" not in raw:  # most are plain, and a file may have very many
        return raw.decode(errors="replace")
    found = text_of(node)
    return found.value if found else ""


def text_of(node: Node | None) -> Text | None:
    """Return a string with its locations; None for other nodes."""
    if node is None or node.type != "string" or node.text is None:
        return None
    raw = node.text.decode(errors="replace")[1:-1]
    row, column = node.start_point[0], node.start_point[1] + 1
    value, places = "", []
    for piece in _PIECE.findall(raw):
        plain = _plain(piece)
        value += plain
        places += [(row, column)] * len(plain)
        column += len(piece.encode())
    return Text(value, (*places, (row, column)))


def appended(node: Node, text: str) -> list[Edit]:
    """Return the edits that append an element to an object or array.

    It gets its own line if the other elements have one.
    """
    elements = _elements(node, node.type)
    if not elements:
        return [_first(node, text)]
    last = elements[-1]
    behind = last.end_point
    if last.start_point[0] == node.start_point[0]:
        return [Edit(behind, behind, f", {text}")]
    after, comma = _line_end(node, last)
    line = f"\n{_indent(last)}{text}" + "," * comma
    if comma or after == behind:
        return [Edit(after, after, "," * (not comma) + line)]
    return [Edit(behind, behind, ","), Edit(after, after, line)]


def _first(node: Node, text: str) -> Edit:
    """Insert into an empty object or array, after its comments."""
    comments = [child for child in node.children if child.type == "comment"]
    place = (comments[-1] if comments else node.children[0]).end_point
    outer = _indent(node)
    own_line = comments and comments[-1].start_point[0] != node.start_point[0]
    inner = _indent(comments[-1]) if own_line else outer + _unit(node)
    closing = "" if node.start_point[0] != node.end_point[0] else f"\n{outer}"
    return Edit(place, place, f"\n{inner}{text}{closing}")


def _line_end(node: Node, last: Node) -> tuple[Place, bool]:
    """Return where a new line may follow the last element, and whether a comma is there.

    A comma and a comment on the element's line belong to it.
    """
    place, comma = last.end_point, False
    for child in _flat(node):
        if child.start_byte < last.end_byte or child.start_point[0] != last.end_point[0]:
            continue
        if child.type in (",", "comment"):
            comma = comma or child.type == ","
            place = child.end_point
    return place, comma


def _indent(node: Node) -> str:
    """Return the indentation of the line on which a node begins."""
    top = node
    while top.parent is not None:
        top = top.parent
    lines = (top.text or b"").decode(errors="replace")
    first = top.start_point[0]
    line = lines.splitlines()[node.start_point[0] - first] if lines else ""
    if node.start_point[0] == first:
        line = " " * top.start_point[1] + line
    return line[: len(line) - len(line.lstrip())]


def _unit(node: Node) -> str:
    """Return one level of indentation, as used around a node."""
    inner, parent = _indent(node), node.parent
    while parent is not None:
        outer = _indent(parent)
        if outer != inner:
            return inner[len(outer) :] or "  "
        parent = parent.parent
    return "    "


def _elements(node: Node | None, kind: str) -> list[Node]:
    return [] if node is None or node.type != kind else [*_values(node)]


def _values(node: Node) -> Iterator[Node]:
    return (child for child in _flat(node) if child.type not in _NO_VALUE)


def _flat(node: Node) -> Iterator[Node]:
    """Yield the children of a node, and those inside of parse errors."""
    for child in node.children:
        if child.type == "ERROR":
            yield from _flat(child)
        else:
            yield child


def _plain(piece: str) -> str:
    try:
        value = json.loads(f'"{piece}"')
    except ValueError:
        return piece
    return str(value)


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
            found = complete(ranks.value, ranks.column(at), state.kept.world(names.items()))
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
