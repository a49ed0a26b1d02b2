"""Processes of ranks that run on this machine: whether one has ended."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_WHO: Final = re.compile(r"([0-9a-f-]{36}) (pid:\[[0-9]{1,20}\]) ([0-9]{1,10}) ([0-9]{1,20})")
_STATE, _START = 0, 19  # among the fields of proc(5) stat from the third on
_DEAD: Final = frozenset("ZXx")


def is_over(process: str) -> bool:
    """Whether a process has ended; False where that cannot be seen from here.

    `process` is as `engine.lessons.WHO` says it: the boot of its machine, its namespace of pids,
    its pid there, and its start in ticks of the clock since that boot. It is a rank's own word.
    """
    said = _WHO.fullmatch(process)
    if said is None or not _is_here(said[1], said[2]):
        return False
    try:
        stat = Path(f"/proc/{said[3]}/stat").read_text("ascii", errors="replace")
    except OSError:
        return not _exists(int(said[3]))  # others' processes may be hidden
    fields = stat.rpartition(")")[2].split()  # the second, a name, may hold anything
    return fields[_STATE] in _DEAD or fields[_START] != said[4]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_here(boot: str, space: str) -> bool:
    try:
        here = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return (here, str(Path("/proc/self/ns/pid").readlink())) == (boot, space)
    except OSError:
        return False
