"""Whether pydevd patches how a rank starts its child processes.

A child that it has patched waits for a debugger for ever. Private interfaces of debugpy, so whoever
calls this must expect any exception.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable


def leave_children_alone() -> None:
    """From now on child processes run without a debugger."""
    _patch_if(lambda: False)


def debug_children() -> None:
    """From now on child processes wait for a debugger, as pydevd has it.

    Also where it was kept from patching before, by `leave_children_alone` or by
    `debugpy.configure(subProcess=False)`, as the in-rank agent does.
    """
    monkey = import_module("_pydev_bundle.pydev_monkey")
    _patch_if(lambda: getattr(monkey._arg_patch, "apply_arg_patching", True))  # noqa: SLF001
    monkey.patch_new_process_functions()


def _patch_if(condition: Callable[[], Any]) -> None:
    monkey: Any = import_module("_pydev_bundle.pydev_monkey")
    if not isinstance(monkey._get_apply_arg_patching, FunctionType):  # noqa: SLF001
        raise TypeError("pydevd decides in another way whether it patches children")
    monkey._get_apply_arg_patching = condition  # noqa: SLF001
