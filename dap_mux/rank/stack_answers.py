"""Answers who looks from outside with this process's stacks, in the format of py-spy's own dumps.

For where py-spy is missing, or the system lets nobody read another process's memory: see
`dap_mux.session.outside_view`. It needs the GIL; `faulthandler` does not, and kills processes:
docs/internals/debugpy.md#a-dump-without-the-gil-kills-a-process-at-work
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from itertools import islice
from pathlib import Path
from traceback import walk_stack
from types import FrameType
from typing import Any, Final

from dap_mux.rank.in_process import start_hidden
from dap_mux.rank.injected.evidence.stacks import no_collection
from dap_mux.rank.ready import STACKS
from dap_mux.rank.redaction import redacted

SEND_TIMEOUT_S: Final = 2.0
MAX_THREADS: Final = 64
MAX_FRAMES: Final = 200
MAX_LOCALS: Final = 40
MAX_CHARS: Final = 80
READS_LOCALS: Final = sys.version_info >= (3, 13)
"""Up to 3.12 `f_locals` keeps what it holds alive for as long as its frame."""


def answer_looks(beside: Path) -> None:
    """Listen on a socket beside a file of ours, in a folder of this user's alone."""
    if not hasattr(socket, "AF_UNIX"):
        return
    door = socket.socket(socket.AF_UNIX)
    try:
        path = beside.with_suffix(STACKS)
        door.bind(str(path))
        path.chmod(0o600)  # by the program's own umask it may be anything
        door.listen()
    except OSError:  # a path of more than 107 bytes, or a file system without sockets
        door.close()
        return
    os.register_at_fork(after_in_child=door.close)
    start_hidden(_serve, door, name="dap-mux stacks")


def _serve(door: socket.socket) -> None:
    while True:
        try:
            peer, _ = door.accept()
        except OSError:
            return
        with peer, suppress(Exception):  # whoever asked has gone; no program may fail for it
            peer.settimeout(SEND_TIMEOUT_S)
            with no_collection():
                stacks = _stacks()
            peer.sendall(json.dumps(stacks).encode("utf-8", "replace"))


def _stacks() -> list[dict[str, Any]]:
    """Return all threads but the one that answers, each with its innermost frame first."""
    # Not `threading.enumerate`: a thread that stands still may hold its lock.
    known = dict(threading._active)  # type: ignore[attr-defined]  # noqa: SLF001
    found = []
    for ident, frame in [*sys._current_frames().items()][:MAX_THREADS]:  # noqa: SLF001
        thread = known.get(ident)
        if not getattr(thread, "pydev_do_not_trace", False):
            found.append(
                {
                    "thread_name": getattr(thread, "name", None),
                    "os_thread_id": getattr(thread, "native_id", None),
                    "frames": _frames(frame),
                }
            )
    return found


def _frames(innermost: FrameType) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for frame, line in islice(walk_stack(innermost), MAX_FRAMES):
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        one = {"name": name, "filename": code.co_filename, "line": line or 0}
        found.append({**one, "locals": _locals(frame)} if READS_LOCALS else one)
    return found


def _locals(frame: FrameType) -> list[dict[str, str]]:
    """Return simple values alone, as `py-spy dump --locals` prints them."""
    found = []
    for name in frame.f_code.co_varnames[:MAX_LOCALS]:
        value = frame.f_locals.get(name)
        if type(value) in (int, float, bool):
            found.append({"name": name, "repr": str(value)[:MAX_CHARS]})
        elif type(value) is str:
            text = redacted(json.dumps(value[:MAX_CHARS]), name)
            found.append({"name": name, "repr": text})
    return found
