"""Find the running session; cheap, because it is polled while there is none."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dap_mux.session_files import SessionFile, find, running, session_folder

# A folder changed this recently may change again with the same modification time.
MTIME_RESOLUTION_S: Final = 2.0


ONLY: Final = "only"


@dataclass(frozen=True)
class Wanted:
    """The session to find: HOST:PORT, a session file, None for the newest one, or `ONLY`.

    `ONLY`: the one that runs, and none while several do. `token`: for a session whose file is not
    on this machine.
    """

    session: str | None = None
    token: str | None = field(default=None, repr=False)


class SessionWatch:
    """Finds the `wanted` session.

    While the folder of session files does not change, a look costs only one `stat`.
    """

    def __init__(self, wanted: Wanted | None = None, folder: Path | None = None) -> None:
        self.wanted = wanted or Wanted()
        self._folder = folder
        self._seen: int | None = None
        self._found: list[SessionFile] = []

    def look(self) -> SessionFile | None:
        """Return the session that is running now. Raises NothingToConnect, Refused, UsageError."""
        name = self.wanted.session
        if name and name != ONLY:
            return find(name, self._folder).with_token(self.wanted.token)
        sessions = self._running()
        if not sessions or (name == ONLY and len(sessions) > 1):
            return None
        return sessions[-1]

    def _running(self) -> list[SessionFile]:
        changed = self._changed()
        if changed is None:
            self._found = []
        elif changed != self._seen or not all(each.alive for each in self._found):
            # Read before the time is stored: the next look notices what appears meanwhile.
            self._found = self.read()
            self._seen = changed if time.time() - changed / 1e9 > MTIME_RESOLUTION_S else None
        return self._found

    def opened(self, session: SessionFile) -> float:
        """Return when a session was opened; now where that is not known.

        Its file's time is exact, and `started` to a second only: a program is often saved in the
        second before it is run.
        """
        try:
            return session.path(self._folder).stat().st_mtime
        except OSError:
            return time.time()

    def read(self) -> list[SessionFile]:
        """Read the folder's files, oldest session first."""
        return running(self._folder)

    def _changed(self) -> int | None:
        try:
            return (self._folder or session_folder()).stat().st_mtime_ns
        except OSError:
            return None
