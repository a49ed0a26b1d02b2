"""`python -m dap_mux.rank.inject --listen HOST:PORT --pid PID`: debugpy's `--pid`, by lldb.

debugpy's own way with lldb needs lldb's Python, which Debian's lldb 14 fails to load, and sees no
error of lldb's. Two calls in lldb's own language do the same.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

# DoAttach's own account: 0, or the place where it gave up
_ATTACHED = re.compile(r"^\(int\) \$\d+ = 0$", re.MULTILINE)
# debugpy starts its adapter, and a fork breaks off a call of lldb's: a thread outlives that call.
# `threading` takes the thread that imports it for the main one.
_IN_A_THREAD = r"import _thread, threading; _thread.start_new_thread(exec, (\"{}\", {{}}))"


class InjectionFailed(Exception):
    """lldb could not do it; what it printed has been printed."""


def lldb_command(pid: int, calls: list[str]) -> list[str]:
    """Have `pid` evaluate these C expressions; the first one that fails is the last.

    There is no time limit: a call that is cut off leaves the process in the middle of something.
    """
    commands = [
        f"process attach --pid {pid}",
        *(f"expression --language c -- {call}" for call in calls),
        "process detach",
    ]
    return [
        "lldb",
        "--no-lldbinit",
        "--batch",
        *(word for each in commands for word in ("-o", each)),
    ]


def debugger_environment() -> dict[str, str]:
    """Ours, without what is meant for another Python than the debugger's own."""
    ours_alone = {"PYTHONPATH", "PYTHONHOME", "PYTHONIOENCODING"}
    return {name: text for name, text in os.environ.items() if name not in ours_alone}


def main() -> None:
    """Do what `python -m debugpy` does with these arguments, by lldb instead of gdb."""
    from debugpy.server import cli  # noqa: PLC0415  (it makes debugpy's own parts importable)

    injector = _injector_of_debugpy()

    def by_lldb(pid: int, python_code: str, **_: object) -> None:
        _attach(pid, python_code, injector.get_target_filename())

    injector.run_python_code = by_lldb  # type: ignore[attr-defined]
    cli.main()  # type: ignore[no-untyped-call]


def _injector_of_debugpy() -> ModuleType:
    """The module that debugpy imports for `--pid`."""
    pydevd = importlib.import_module("pydevd")
    folder = Path(str(pydevd.__file__)).parent / "pydevd_attach_to_process"
    sys.path.append(str(folder))
    return importlib.import_module("add_code_to_python_process")


def _attach(pid: int, python_code: str, library: str) -> None:
    """Run the code, which has no quotes in it, in the process. Raises `InjectionFailed`."""
    code = _IN_A_THREAD.format(python_code)
    calls = [f'(void*)dlopen("{library}", 2)', f'(int)DoAttach(0, "{code}", 0)']
    done = subprocess.run(
        lldb_command(pid, calls),
        env=debugger_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    sys.stdout.write(done.stdout)
    sys.stdout.flush()
    if done.returncode or not _ATTACHED.search(done.stdout):
        raise InjectionFailed("lldb failed")


if __name__ == "__main__":
    main()
