"""Run a program as `python` itself would: same `__main__`, arguments, path, exit, traceback."""

from __future__ import annotations

import builtins
import io
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from pkgutil import read_code
from types import CodeType, ModuleType, TracebackType

from dap_mux.rank.hidden_frames import users_part


def run_script(path: str, arguments: Sequence[str]) -> None:
    """`python PATH ARGUMENTS`: a file, or a folder or archive that holds a `__main__.py`."""
    sys.argv[:] = [path, *arguments]
    # As it was written, dots and all: `python` itself does no more.
    absolute = path if Path(path).is_absolute() else f"{Path.cwd()}{os.sep}{path}"
    if pkgutil.get_importer(path) is not None:
        _set_first_entry(absolute)
        _new_main()
        run_as_main("__main__", alter_argv=False)
        return
    _set_first_entry(str(Path(path).resolve().parent))
    main = _new_main(
        __file__=absolute,
        __cached__=None,
        __loader__=SourceFileLoader("__main__", absolute),
    )
    # No context manager here: its `__exit__` would be a frame that a step can land in.
    try:
        exec(_code_of(absolute), main.__dict__)  # noqa: S102  (the user's own program)
    except BaseException:
        _hide_us_from_excepthook()
        raise


def run_module(name: str, arguments: Sequence[str]) -> None:
    """`python -m NAME ARGUMENTS`."""
    sys.argv[:] = ["-m", *arguments]
    _set_first_entry(str(Path.cwd()))
    _new_main()
    run_as_main(name, alter_argv=True)


# The name of this file matters: under `sys.monitoring` (Python 3.12 on) debugpy takes the frame
# above a function `run...` of a file `runpy.py` for the program's outermost one, and so reports
# exceptions that leave it as uncaught.
def run_as_main(name: str, alter_argv: bool) -> None:
    # Not public, but the very function behind `python -m`; `runpy.run_module` differs in
    # names, and puts `sys` back at the end, under the feet of threads that still run.
    run: Callable[[str, bool], object] = vars(runpy)["_run_module_as_main"]
    try:
        run(name, alter_argv)
    except BaseException:
        _hide_us_from_excepthook()
        raise


def _new_main(**names: object) -> ModuleType:
    """A fresh `__main__` for good, holding what `python` puts there and `names`."""
    module = ModuleType("__main__")
    module.__dict__.update(__annotations__={}, __builtins__=builtins, **names)
    sys.modules["__main__"] = module
    return module


def _code_of(path: str) -> CodeType:
    """The code of a script, compiled or not. Raises SyntaxError as `python` does."""
    with io.open_code(path) as file:
        code: CodeType | None = read_code(file)
    if code is not None:
        return code
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def _set_first_entry(entry: str) -> None:
    """Put `entry` where Python puts the folder of a program, if it does."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path[0] = entry


def _hide_us_from_excepthook() -> None:
    """As an exception leaves the program: the hook of that moment need not see our frames."""
    hook = sys.excepthook

    def print_users_part(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        theirs = users_part(trace)
        hook(kind, error.with_traceback(theirs), theirs)

    sys.excepthook = print_users_part
