"""A rank that runs out of memory: in a control group with little of it, where one can be made.

Elsewhere it is killed, and what the kernel would have recorded is written into its log.
"""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

ROOTS: Final = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
KERNEL_LOG: Final = Path("/dev/kmsg")
RECORD: Final = "<3>Memory cgroup out of memory: Killed process {} (python)\n"  # mm/oom_kill.c


def missing() -> str:
    """Return why neither can be had; "" where one can."""
    if _root() is not None or os.access(KERNEL_LOG, os.W_OK):
        return ""
    return f"there is no control group (version 2) with memory.max, and {KERNEL_LOG} is read-only"


def run_out(pid: int, stack: AsyncExitStack) -> None:
    """Let a process have less memory than it has already; the group goes with the stack."""
    root = _root()
    if root is None:
        os.kill(pid, signal.SIGKILL)
        KERNEL_LOG.write_text(RECORD.format(pid), "ascii")
        return
    with suppress(OSError):
        (root / "cgroup.subtree_control").write_text("+memory", "ascii")
    group = Path(tempfile.mkdtemp(prefix="why-score-", dir=root))
    stack.callback(_remove, group)
    (group / "cgroup.procs").write_text(str(pid), "ascii")
    (group / "memory.max").write_text("1M", "ascii")


def _root() -> Path | None:
    """Return where groups can be made."""
    for root in ROOTS:
        with suppress(OSError):
            controllers = (root / "cgroup.controllers").read_text("ascii").split()
            if "memory" in controllers and os.access(root, os.W_OK):
                return root
    return None


def _remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()
