"""What pdb's commands evaluate in a stopped rank: functions of `injected.pdb_views`."""

from __future__ import annotations

from dap_mux.engine.injected_sources import call


class PdbExpressions:
    """One for each function; `source`: that of `injected.pdb_views`."""

    def __init__(self, source: str) -> None:
        self._source = source

    def arguments(self) -> str:
        """`a`."""
        return call(self._source, "arguments")

    def long_list(self, current: int) -> str:
        """`ll`; `current` is the line that the frame is at."""
        return call(self._source, "long_list", str(current))

    def list_lines(self, first: int, last: int, current: int) -> str:
        """`l`; `first` and `last` are clipped to the file."""
        return call(self._source, "list_lines", str(first), str(last), str(current))

    def line_text(self, line: int) -> str:
        """One line of the frame's file."""
        return call(self._source, "line_text", str(line))

    def lines_from(self, first: int) -> str:
        """The numbers of the lines of the frame's function, `first` and later."""
        return call(self._source, "lines_from", str(first))

    def of_value(self, command: str, expression: str) -> str:
        """`pp`, `source` and `whatis`."""
        return call(self._source, command, f"({expression}\n)")
