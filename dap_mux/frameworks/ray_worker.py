"""In a worker of Ray: becomes a rank before its first task, when it is known what it is.

Ray starts workers ahead of their work, for whatever comes: a setup hook runs before anything says
which actor the process will be.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray

from dap_mux.frameworks import ray_copies, ray_numbers, ray_threads
from dap_mux.rank import api
from dap_mux.rank.dial import ADDRESS
from dap_mux.rank.environ import Place
from dap_mux.rank.launched import HOOK_OPTIONS, HookOptions, become
from dap_mux.rank.ready import RENDEZVOUS, say

TASK = "task"
TRAITS = {"userThreads": True, "swallowsExceptions": True}  # an actor may run methods side by side
_FIRST_CALLS = ("load_actor_class", "get_execution_info")
_BUNDLE = re.compile(r".*_group_(\d+)_([0-9a-f]+)", re.ASCII)
OUT_OF_REACH = (
    "runs on {}, out of the session's reach, and is not debugged: with `dap-mux run --dial`, ranks "
    "on other machines connect to the session"
)


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
    if not os.environ.get(ADDRESS) and not Path(os.environ.get(RENDEZVOUS, "")).is_dir():
        say(place, OUT_OF_REACH.format(socket.gethostname()))
        return
    options = HookOptions(**json.loads(os.environ.get(HOOK_OPTIONS) or "{}"))
    become(place, options, {**TRAITS, **ray_copies.traits()})
    ray_copies.take_originals_for_copies()
    ray_threads.trace_methods()
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
