"""Which process a rank is, for a session on the same machine.

Where the rank's adapter dies before it can say that the program has ended, the session looks
whether this process is still there.
"""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
START_TIME = 19
"""Its place in `/proc/PID/stat` behind the name."""


def process_identity() -> str:
    """Return the boot, the pid namespace, the pid and the start; "" where there is no /proc."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        stat = (PROC / "self/stat").read_bytes().rpartition(b")")[2].split()
        namespace = os.readlink(str(PROC / "self/ns/pid"))  # noqa: PTH115  (new in Python 3.9)
    except (OSError, ValueError, IndexError):
        return ""
    return " ".join((boot, namespace, str(os.getpid()), stat[START_TIME].decode("ascii")))
