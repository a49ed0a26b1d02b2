"""`breakpoint()` stops in an attached debugger; otherwise it does what it did before us.

debugpy takes `sys.breakpointhook` when it starts, and its hook does nothing while no debugger is
attached: then the breakpoints of a framework that has a hook of its own (Ray, Monarch) are lost.
Others set the hook after us, and a breakpoint would leave the session. So the hook stays theirs,
and the builtin that calls it is ours. With Python's own hook before us and no `PYTHONBREAKPOINT`,
a `breakpoint()` without a debugger does nothing, as under debugpy by itself: pdb would read from a
terminal that a rank does not have.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import debugpy  # noqa: T100

VARIABLE = "PYTHONBREAKPOINT"
DEBUGPYS = frozenset({"pydevd", "debugpy._vendored.force_pydevd"})
"""The modules whose hooks are debugpy's own."""

_usual: Callable[..., Any] = builtins.breakpoint


@contextmanager
def keep_breakpoint_hook() -> Iterator[None]:
    """Start debugpy inside: afterwards `sys.breakpointhook` is again what the program had set.

    Where that fails, with any exception, the builtin stays Python's.
    """
    before = sys.breakpointhook
    try:
        yield
    finally:
        if not _is_default(before):
            sys.breakpointhook = before
        elif not _is_debugpys(sys.breakpointhook):  # given back, and debugpy sets it only once
            sys.breakpointhook = _debugpys_hook()
    builtins.breakpoint = breakpoint_or_usual


def breakpoint_or_usual(*arguments: Any, **named: Any) -> Any:
    """The builtin `breakpoint` of a rank."""
    if debugpy.is_client_connected():
        debugpy.breakpoint()  # noqa: T100  (our frames are hidden: it stops in the caller's)
        return None
    if _is_debugpys(sys.breakpointhook) and _variable_names_another():
        return sys.__breakpointhook__(*arguments, **named)  # noqa: T100  (it heeds the variable)
    return _usual(*arguments, **named)


def give_breakpoint_back() -> None:
    """Make `breakpoint()` what it is without a debugger, in a process that has none any more."""
    builtins.breakpoint = _usual
    if _is_debugpys(sys.breakpointhook):
        sys.breakpointhook = sys.__breakpointhook__


def _debugpys_hook() -> Callable[..., Any]:
    module = sys.modules.get("debugpy._vendored.force_pydevd")
    hook: Callable[..., Any] = getattr(module, "debugpy_breakpointhook", sys.breakpointhook)
    return hook


def _variable_names_another() -> bool:
    """A debugger named there has had its client: the next breakpoint does not wait for another."""
    return not f"{os.environ.get(VARIABLE, '')}.".startswith((".", "dap_mux.", "debugpy."))


def _is_default(hook: Callable[..., Any]) -> bool:
    return hook is sys.__breakpointhook__ or _is_debugpys(hook)


def _is_debugpys(hook: Callable[..., Any]) -> bool:
    return getattr(hook, "__module__", None) in DEBUGPYS


# So that it is found, and pickled, under its usual name.
breakpoint_or_usual.__module__ = "builtins"
breakpoint_or_usual.__name__ = breakpoint_or_usual.__qualname__ = "breakpoint"
