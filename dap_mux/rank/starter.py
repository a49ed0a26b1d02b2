"""The session that started this job, and whether it has gone.

No rank waits for the first debugger of a session that is gone, killed, say: where an editor has
launched the job its ranks end then, and those of `dap-mux run` run on. They are told the session's
process in a variable, and look at it while they wait. Later they do not: a program that has begun
runs on without its session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

STARTER = "DAP_MUX_STARTER"
UNKNOWN = "unknown"
_ENDS = "ends"
_START = 19  # among the fields of proc(5) stat from the third on
_DEAD = "ZXx"


def starter_variables(*, ends_with_us: bool) -> dict[str, str]:
    """Return the variables that tell ranks of us; `ends_with_us`: they end once we are gone."""
    return {STARTER: f"{this_process()} {_ENDS}" if ends_with_us else this_process()}


def ends_with_starter(environ: Mapping[str, str]) -> bool:
    """Whether a rank that still waits for its first debugger ends with its starter."""
    return environ.get(STARTER, "").endswith(_ENDS)


def this_process() -> str:
    """Describe the calling process as STARTER does, as far as the system tells."""
    try:
        return f"{_machine()} {os.getpid()} {_fields(os.getpid())[_START]}"
    except (OSError, IndexError):
        return UNKNOWN


def starter_is_gone(environ: Mapping[str, str]) -> bool:
    """Whether the process that STARTER names has ended; False where that cannot be seen."""
    words = environ.get(STARTER, "").split()
    try:
        machine, pid, start = " ".join(words[:2]), int(words[2]), words[3]
        if sys.platform == "win32" or machine != _machine():
            return False
        os.kill(pid, 0)
        fields = _fields(pid)
        return fields[0] in _DEAD or fields[_START] != start
    except ProcessLookupError:
        return True
    except (OSError, ValueError, IndexError):
        return False


def _machine() -> str:
    """The boot of this machine, and the namespace of our pid."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  (Path has it since Python 3.9)
    return f"{boot} {space}"


def _fields(pid: int) -> list[str]:
    stat = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    return stat.rpartition(")")[2].split()
