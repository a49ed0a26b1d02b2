"""Tells the editor in whose terminal we run that there is a session to join.

The editor sets DAP_MUX_ANNOUNCE in its terminals to the path of a unix socket that only the user
can access. We send one line of JSON: the session's address, its `name`, and the folder that it runs
in (`cwd`). The token is not needed: the session's unix socket does not ask this user for it.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path
from typing import Final

import anyio

from dap_mux.private_files import foreign
from dap_mux.session.terminal_output import say
from dap_mux.session_files import SessionFile

logger = logging.getLogger("dap_mux.session")
VARIABLE: Final = "DAP_MUX_ANNOUNCE"
ANNOUNCE_TIMEOUT_S: Final = 2.0  # a busy editor must not delay the job


async def announce(session: SessionFile, name: str) -> bool:
    """Announce the session, if in an editor's terminal. Whether that worked; never raises."""
    path = os.environ.get(VARIABLE)
    if not path:
        return False
    problem = _problem(Path(path)) or await _tell(path, session, name)
    if problem:
        # The editor may have been closed while its terminal lives on: not worth a warning.
        logger.info("%s: not announced to %s: %s", name, path, problem)
        return False
    say("announced the session to the editor of this terminal, which joins it")
    return True


def _problem(path: Path) -> str:
    """Return why this is not a socket that only the user can access, '' where it is."""
    try:
        status = path.lstat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISSOCK(status.st_mode):
        return "not a socket"
    if foreign(status) or stat.S_IMODE(status.st_mode) & 0o077:
        return "other users can access it"
    return ""


async def _tell(path: str, session: SessionFile, name: str) -> str:
    line = json.dumps({**session.public(), "name": name, "cwd": str(Path.cwd())}) + "\n"
    try:
        with anyio.fail_after(ANNOUNCE_TIMEOUT_S):
            async with await anyio.connect_unix(path) as editor:
                await editor.send(line.encode())
    except (OSError, TimeoutError, anyio.BrokenResourceError) as error:
        return str(error) or type(error).__name__
    return ""
