"""Lines and columns as the editor counts them, as Python does, and as `ast` does."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from dap_mux.lsp.expressions import Expression


class Positions:
    """One document's places; the editor and the server have agreed on what they count."""

    def __init__(self, server: LanguageServer, document: TextDocument) -> None:
        self._codec = server.workspace.position_codec
        self._lines = document.lines

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def at(self, line: int, column: int) -> types.Position:
        """From a line and a character, both 0-based; behind the end is the end."""
        if line >= len(self._lines):
            return types.Position(line, 0)
        before = self._lines[line].rstrip("\r\n")[:column]
        return types.Position(line, self._codec.client_num_units(before))

    def whole(self, line: int) -> types.Range:
        """Return a line's text without the space in front and the end of line."""
        if line >= len(self._lines):
            return types.Range(types.Position(line, 0), types.Position(line, 0))
        text = self._lines[line].rstrip()
        return types.Range(self.at(line, len(text) - len(text.lstrip())), self.at(line, len(text)))

    def end(self, line: int) -> types.Position:
        """Return the end of a line."""
        return self.at(line, len(self._lines[line]))

    def to_ast(self, position: types.Position) -> tuple[int, int]:
        """Return a line from 1 and a column in bytes."""
        found = self._codec.position_from_client_units(self._lines, position)
        line = self._lines[found.line] if found.line < len(self._lines) else ""
        return found.line + 1, len(line[: found.character].encode())

    def of(self, found: Expression) -> types.Range:
        """Return where an expression stands."""
        return self.between((found.line - 1, found.column), (found.end_line - 1, found.end_column))

    def from_bytes(self, line: int, column: int) -> types.Position:
        """From a line and a column in bytes, both 0-based."""
        text = self._lines[line] if line < len(self._lines) else ""
        return self.at(line, len(text.encode()[:column].decode(errors="ignore")))

    def between(self, start: tuple[int, int], end: tuple[int, int]) -> types.Range:
        """From two such places."""
        return types.Range(self.from_bytes(*start), self.from_bytes(*end))
