"""JSON with comments while it is edited: values with their locations, and edits that add to it.

Edits only insert or replace values, so comments and layout stay as they are. Incomplete text is
parsed as far as possible, and trailing commas are allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import tree_sitter_json
from tree_sitter import Language, Node, Parser

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
