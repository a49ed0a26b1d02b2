"""Traces the threads that run the methods of one actor of Ray side by side.

They are started in C++: up to Python 3.11, debugpy finds those of them alone that run Python at the
moment in which it looks.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import debugpy  # noqa: T100
import ray

_MAKE = "_make_actor_method_executor"
_EXECUTOR = "actor_method_executor"


def trace_methods() -> None:
    """From now on every method of an actor is traced, in whichever thread it runs."""
    manager = ray._private.worker.global_worker.function_actor_manager  # noqa: SLF001
    if _MAKE in vars(manager):
        return
    make: Callable[..., Any] = getattr(manager, _MAKE)

    def make_traced(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        return _traced(make(name, method))

    setattr(manager, _MAKE, make_traced)
    for methods in (manager.execution_infos, manager._function_execution_info):  # noqa: SLF001
        for key, info in list(methods.items()):
            if info.function.__name__ == _EXECUTOR:
                methods[key] = info._replace(function=_traced(info.function))


def _traced(execute: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(execute)  # Ray reads attributes of it
    def trace_and_execute(*arguments: Any, **named: Any) -> Any:
        if threading.get_ident() != threading.main_thread().ident:
            debugpy.trace_this_thread(True)  # no more than a debugger is attached for
        return execute(*arguments, **named)

    return trace_and_execute
