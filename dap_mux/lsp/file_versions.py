"""The earlier texts of an open file: a rank runs the text that the file had when it started."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dap_mux.lsp.line_map import line_map
from dap_mux.user_files import open_regular

MAX_VERSIONS: Final = 50


@dataclass(frozen=True)
class _Version:
    text: str
    since: float


class FileVersions:
    """The texts of a file since it was opened in the editor.

    `opened`: the text with which it was opened, for a file that is not on this machine.
    """

    def __init__(self, path: str, opened: str) -> None:
        self._path = Path(path)
        self._stamp: tuple[int, int] | None = None
        self._versions: list[_Version] = []
        self.look()
        if not self._versions:
            self._versions.append(_Version(opened, 0.0))

    def look(self) -> None:
        """Read the file if it has changed."""
        try:
            status = self._path.stat()
            stamp = status.st_mtime_ns, status.st_size
            if stamp == self._stamp:
                return
            # As the editor has it: line ends are not translated, and the mark is left out.
            with open_regular(self._path) as file:
                text = file.read().decode("utf-8-sig")
        except (OSError, ValueError):
            return
        self._stamp = stamp
        last = self._versions[-1] if self._versions else None
        if last is None or text != last.text:
            newer = last is None or status.st_mtime > last.since
            since = status.st_mtime if newer else time.time()
            self._versions.append(_Version(text, since))
            del self._versions[1:-MAX_VERSIONS]  # ranks may have run since the first one

    def line_now(self, line: int, started: float, now: str) -> int | None:
        """Return where a line is in the editor's text that a rank runs which has then started."""
        known = [each for each in self._versions if each.since <= started]
        version = known[-1] if known else self._versions[0]
        found = line_map(version.text, now)
        return found.now(line) if found else line
