"""Two debuggers' prompts behind TCP, typed at as `nc` does, and the table that both draw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from tests.bench.wire import LIMIT, Connection

Places = Mapping[int, tuple[str, str]]
"""Function and line by rank."""

_FOLDED: Final = re.compile(r"\{([\d,-]+)\}: \d")
_ALONE: Final = re.compile(r"^\d+$", re.MULTILINE)
_RECEIVE: Final = 1 << 16


@dataclass(frozen=True)
class Manner:
    """How one debugger speaks: what ends its answers. Patterns are of bytes.

    `cast` and `attach` are lines to type; the first takes a command of pdb.
    """

    name: str
    prompt: bytes
    listed: bytes
    attached: bytes
    cast: str
    attach: str


class Prompt(Connection):
    """One prompt. What comes by itself between two lines is read and forgotten."""

    def __init__(self, port: int, manner: Manner) -> None:
        self.manner = manner
        super().__init__(port)
        self._buffer = b""
        self.until(manner.prompt)

    def until(self, pattern: bytes) -> str:
        """Read up to the end of what the pattern matches."""
        while not (found := re.search(pattern, self._buffer)):
            data = self._socket.recv(_RECEIVE)
            assert data, f"{self.manner.name} hung up: {self._buffer.decode()}"
            self._buffer += data
        text, self._buffer = self._buffer[: found.end()], self._buffer[found.end() :]
        return text.decode()

    def forget(self) -> None:
        """Read what has come by itself."""
        self._socket.setblocking(False)
        try:
            while self._socket.recv(_RECEIVE):
                pass
        except BlockingIOError:
            self._buffer = b""
        finally:
            self._socket.settimeout(LIMIT)

    def type(self, *lines: str) -> None:
        """Send lines in one go."""
        self._socket.sendall("".join(f"{line}\n" for line in lines).encode())

    def timed(self, line: str, pattern: bytes) -> float:
        """Type a line; return the seconds until its answer is whole."""
        self.forget()
        start = perf_counter()
        self.type(line)
        self.until(pattern)
        return perf_counter() - start

    def does(self, line: str, pattern: bytes) -> str:
        """Type a line; return what was shown up to the end of its answer."""
        self.forget()
        self.type(line)
        return self.until(pattern)

    def places(self) -> Places:
        """Return where the ranks are that `list` shows."""
        self.forget()
        self.type("list")
        return self.table()

    def table(self) -> Places:
        """Return the same from the next table, asked for before."""
        return places_in(self.until(self.manner.listed))


def places_in(text: str) -> Places:
    """Read the table: Monarch's first six columns are ours too."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return {int(row[1]): (row[4], row[5]) for row in cells if row[1].isdecimal()}


def all_moved(before: Places, now: Places) -> bool:
    """Whether every rank is shown, and none where it was."""
    return before.keys() == now.keys() and all(now[rank] != before[rank] for rank in before)


def answered_in(text: str) -> int:
    """Return how many ranks a cast tells a number of: `{0-3,5}: 7 | {4}: 8`, or a line each."""
    folded = [part for found in _FOLDED.findall(text) for part in found.split(",")]
    ends = [[int(end) for end in part.split("-")] for part in folded]
    return sum(end[-1] - end[0] + 1 for end in ends) + len(_ALONE.findall(text))
