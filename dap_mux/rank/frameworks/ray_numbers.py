"""Numbers the actors of a Ray job, class by class, in the order in which they were created.

Ray itself keeps no such order: ids are random, and actors start side by side. So the process that
creates an actor claims its number in the key-value store of the cluster.
"""

from __future__ import annotations

import functools
import re
import time
from typing import Any

import ray
from ray.actor import ActorClass

NAMESPACE = b"dap-mux"
CREATOR_LIMIT_S = 2.0  # for the number from the creator, which is on its way before the actor
POLL_INTERVAL_S = 0.01
_TRAILING_NUMBER = re.compile(r"\d+$", re.ASCII)


def number_created_actors() -> None:
    """From now on each actor that this process creates has a number."""
    create = ActorClass._remote  # noqa: SLF001

    @functools.wraps(create)
    def create_and_number(self: Any, *arguments: Any, **options: Any) -> Any:
        handle = create(self, *arguments, **options)
        name = options.get("name") or ""
        _number(handle._actor_id.hex(), _class_name(handle), name)  # noqa: SLF001
        return handle

    type.__setattr__(ActorClass, "_remote", create_and_number)


def number_of(actor: str, class_name: str, name: str) -> int:
    """Return the number of the actor with this id (hexadecimal)."""
    until = time.monotonic() + CREATOR_LIMIT_S
    while (number := _get(_actor_key(actor))) is None and time.monotonic() < until:
        time.sleep(POLL_INTERVAL_S)
    return _number(actor, class_name, name) if number is None else int(number)


def group_of(class_name: str) -> str:
    """Return the group of actors of a class, whose name has the function that it is defined in."""
    return class_name.rpartition(".")[2]


def claim(group: str, owner: str, first: int = 0) -> int:
    """Return the lowest number from `first` that nothing else in the group has."""
    number = first
    while not _put(f"{_job()}/number/{group}/{number}", owner):
        number += 1
    return number


def forget() -> None:
    """Remove all numbers of this job."""
    _client().internal_kv_del(_job().encode(), True, NAMESPACE)


def _number(actor: str, class_name: str, name: str) -> int:
    """Number an actor, if it has no number yet: by its name's own where that is free."""
    key = _actor_key(actor)
    present = _get(key)
    if present is not None:
        return int(present)
    wanted = _TRAILING_NUMBER.search(name)
    number = claim(class_name, actor, int(wanted[0]) if wanted else 0)
    _put(key, str(number))
    return int(_get(key) or number)


def _actor_key(actor: str) -> str:
    return f"{_job()}/actor/{actor}"


def _class_name(handle: Any) -> str:
    descriptor = handle._ray_actor_creation_function_descriptor  # noqa: SLF001
    return group_of(str(descriptor.class_name))


def _put(key: str, value: str) -> bool:
    """Whether the key was free."""
    return bool(_client().internal_kv_put(key.encode(), value.encode(), False, NAMESPACE))


def _get(key: str) -> str | None:
    value = _client().internal_kv_get(key.encode(), NAMESPACE)
    return None if value is None else value.decode()


def _job() -> str:
    return str(ray.get_runtime_context().get_job_id())


def _client() -> Any:
    return ray._private.worker.global_worker.gcs_client  # noqa: SLF001
