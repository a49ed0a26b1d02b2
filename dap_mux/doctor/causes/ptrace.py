"""A running process that cannot be attached to: forbidden, not Python, or no native debugger."""

from __future__ import annotations

import os
from typing import Final

from dap_mux import procfs
from dap_mux.cluster.injection import REMOTE_EXEC_PYTHON, debugger_for
from dap_mux.cluster.native_debuggers import NoWorkingDebugger
from dap_mux.cluster.python_process import RunningPython, refuse_to_trace
from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations
from dap_mux.errors import DapMuxError, NothingToConnect, Refused

FORBIDDEN: Final = "ptrace"
UNFIT: Final = "process"
ALLOW: Final = (
    "run `dap-mux` as the user of that process, or as root",
    (
        "where the kernel forbids it: `sudo sysctl kernel.yama.ptrace_scope=0`; in a container the "
        "capability SYS_PTRACE (docker: --cap-add SYS_PTRACE; Kubernetes: capabilities.add)"
    ),
    "or start the program under the debugger: `dap-mux run`",
)
NAME_ANOTHER: Final = ("name a running process of Python 3.8 or later",)
INSTALL: Final = (
    "`apt-get install gdb lldb`: one that works is enough",
    "or start the program under the debugger: `dap-mux run`",
)


async def examine(observed: Observations) -> list[Finding]:
    """Check each process that the user named."""
    return [found for pid in observed.processes if (found := await _of_process(pid))]


async def _of_process(pid: int) -> Finding | None:
    try:
        process = RunningPython.read(pid)
        if process.listening_port() is None:
            refuse_to_trace(process)
            _look_inside(process)
            await debugger_for([process])
    except (Refused, PermissionError) as error:
        seen = str(error)
        return Finding(
            FORBIDDEN,
            f"debugging process {pid} is not permitted",
            (seen,),
            ALLOW,
            where=f"pid:{pid}",
        )
    except (NothingToConnect, DapMuxError, OSError) as error:
        fix = INSTALL if isinstance(error, NoWorkingDebugger) else NAME_ANOTHER
        return Finding(
            UNFIT,
            f"process {pid} cannot be debugged",
            (str(error),),
            fix,
            where=f"pid:{pid}",
        )
    return None


def _look_inside(process: RunningPython) -> None:
    """Let the kernel decide as it does for gdb: opening the memory follows the same rule."""
    if process.version >= REMOTE_EXEC_PYTHON:
        return
    os.close(os.open(procfs.folder(process.pid) / "mem", os.O_RDONLY))
