"""A control group with little memory, in which a rank runs out of it; where one can be made."""

from __future__ import annotations

import os
import tempfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

ROOTS: Final = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))


def missing() -> str:
    """Return why no such group can be made; "" where one can."""
    for root in ROOTS:
        with suppress(OSError):
            if "memory" in (root / "cgroup.controllers").read_text("ascii").split():
                return "" if os.access(root, os.W_OK) else f"{root} cannot be written"
    return "there is no control group (version 2) with memory.max"


def run_out(pid: int, stack: AsyncExitStack) -> None:
    """Let a process have less memory than it has already; the group goes with the stack."""
    (root,) = (root for root in ROOTS if (root / "cgroup.controllers").exists())
    with suppress(OSError):
        (root / "cgroup.subtree_control").write_text("+memory", "ascii")
    group = Path(tempfile.mkdtemp(prefix="why-score-", dir=root))
    stack.callback(_remove, group)
    (group / "cgroup.procs").write_text(str(pid), "ascii")
    (group / "memory.max").write_text("1M", "ascii")


def _remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()
