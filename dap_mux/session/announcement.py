"""Telling the editor in whose terminal we run that there is a session to join.

The editor sets DAP_MUX_ANNOUNCE in its terminals: the path of a unix socket of mode 0600, the
user's own. It is told once, in one line of JSON: where the session is, what it is called (`name`)
and in which folder it runs (`cwd`). No token: the session's own socket asks this user for none.
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
ANNOUNCE_TIMEOUT_S: Final = 2.0  # s; an editor that is busy must not hold up the job


async def announce(session: SessionFile, name: str) -> bool:
    """Tell the editor, if we run in a terminal of one. Whether it was told; never raises."""
    path = os.environ.get(VARIABLE)
    if not path:
        return False
    problem = _problem(Path(path)) or await _tell(path, session, name)
    if problem:
        # Its window may be gone while the terminal lives on: nothing that the user must know.
        logger.info("%s: not announced to %s: %s", name, path, problem)
        return False
    say("the editor of this terminal was told, and joins the session")
    return True


def _problem(path: Path) -> str:
    """Say why this is no socket of ours alone, '' where it is."""
    try:
        status = path.lstat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISSOCK(status.st_mode):
        return "no socket"
    if foreign(status) or stat.S_IMODE(status.st_mode) & 0o077:
        return "others may use it"
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
