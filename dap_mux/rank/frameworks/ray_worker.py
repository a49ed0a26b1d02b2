"""In a worker of Ray: becomes a rank before its first task, when it is known what it is.

Ray starts workers ahead of their work, for whatever comes: a setup hook runs before anything says
which actor the process will be.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any

import debugpy  # noqa: T100
import ray

from dap_mux.rank import api
from dap_mux.rank.environ import Place
from dap_mux.rank.frameworks import ray_copies, ray_numbers
from dap_mux.rank.frameworks.launched import joins_session, say_out_of_reach

TASK = "task"
TRAITS = {"userThreads": True, "swallowsExceptions": True}  # an actor may run methods side by side
_FIRST_CALLS = ("load_actor_class", "get_execution_info")
_BUNDLE = re.compile(r".*_group_(\d+)_([0-9a-f]+)", re.ASCII)


def set_up() -> None:
    """Become a rank before the first task."""
    manager = _worker().function_actor_manager
    for name in _FIRST_CALLS:
        _precede(manager, name)
    ray_numbers.number_created_actors()


def _precede(manager: Any, name: str) -> None:
    usual: Callable[..., Any] = getattr(manager, name)

    def become_and_call(job: Any, descriptor: Any) -> Any:
        for each in _FIRST_CALLS:
            vars(manager).pop(each, None)
        _become()
        return usual(job, descriptor)

    setattr(manager, name, become_and_call)


def _become() -> None:
    place = _place()
    if not joins_session(place, {**TRAITS, **ray_copies.traits()}):
        say_out_of_reach(place)
        return
    ray_copies.take_originals_for_copies()
    trace_methods()
    _, port = api.start(api.Setup(place=place, quiet=True))  # where it listens already
    if port:
        _worker().set_debugger_port(port)  # Ray's own breakpoint() would open another


def _place() -> Place:
    """Return what this process is: an actor of a class, or one of those that run tasks."""
    context = ray.get_runtime_context()
    actor = context.get_actor_id()
    if actor is None:
        number = ray_numbers.claim(TASK, context.get_worker_id())
        return Place(rank=number, launcher="Ray", group=TASK)
    table = _actor_table(actor)
    group = ray_numbers.group_of(table.class_name)
    number = ray_numbers.number_of(actor, group, table.name)
    return Place(rank=number, launcher="Ray", group=group, coords=_coords())


def _coords() -> dict[str, int] | None:
    """Return the place of this process's bundle in its placement group."""
    for resource in _worker().core_worker.resource_ids():
        found = _BUNDLE.fullmatch(resource)
        if found is not None:
            return {"bundle": int(found[1])}
    return None


def _actor_table(actor: str) -> Any:
    from ray.core.generated.gcs_pb2 import ActorTableData  # noqa: PLC0415

    accessor = ray._private.state.state._connect_and_get_accessor()  # noqa: SLF001
    return ActorTableData.FromString(accessor.get_actor_info(ray.ActorID.from_hex(actor)))


def _worker() -> Any:
    return ray._private.worker.global_worker  # noqa: SLF001


# Traces the threads that run the methods of one actor of Ray side by side.
#
# They are started in C++: up to Python 3.11, debugpy finds those of them alone that run Python at
# the moment in which it looks.

_MAKE = "_make_actor_method_executor"
_EXECUTOR = "actor_method_executor"


def trace_methods() -> None:
    """From now on every method of an actor is traced, in whichever thread it runs."""
    manager = _worker().function_actor_manager
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
