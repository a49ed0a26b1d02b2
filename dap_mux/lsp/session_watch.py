"""Find the running session; cheap, because it is polled while there is none."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from dap_mux.session_files import SessionFile, find, running, session_folder

# A folder changed this recently may change again with the same modification time.
MTIME_RESOLUTION_S: Final = 2.0


class SessionWatch:
    """Finds a session: the `wanted` one (HOST:PORT or a session file), else the newest.

    While the folder of session files does not change, a look costs only one `stat`.
    """

    def __init__(self, wanted: str | None = None, folder: Path | None = None) -> None:
        self.wanted = wanted
        self._folder = folder
        self._seen: int | None = None
        self._found: SessionFile | None = None

    def look(self) -> SessionFile | None:
        """Return the session that is running now. Raises NothingToConnect, Refused, UsageError."""
        if self.wanted:
            return find(self.wanted, self._folder)
        changed = self._changed()
        if changed is None:
            self._found = None
        elif changed != self._seen or (self._found and not self._found.alive):
            # Read before the time is stored: the next look notices what appears meanwhile.
            sessions = self.read()
            self._found = sessions[-1] if sessions else None
            self._seen = changed if time.time() - changed / 1e9 > MTIME_RESOLUTION_S else None
        return self._found

    def read(self) -> list[SessionFile]:
        """Read the folder's files, oldest session first."""
        return running(self._folder)

    def _changed(self) -> int | None:
        try:
            return (self._folder or session_folder()).stat().st_mtime_ns
        except OSError:
            return None
