"""The actors of a running Ray cluster: found in the tables of the GCS, and asked to listen."""

from __future__ import annotations

import re
from typing import Any

import ray
from ray import cloudpickle
from ray.core.generated.core_worker_pb2 import ActorHandle
from ray.core.generated.gcs_pb2 import ActorTableData, WorkerTableData

from dap_mux.rank.frameworks import arming
from dap_mux.rank.frameworks.ray_numbers import group_of

ANSWER_LIMIT_S = 0.5  # of an actor that is idle; then it is taken for a busy one
LOOPBACK = "127.0.0.1"
PYTHON = 0  # among Ray's languages
ALIVE = "ALIVE"
INTERNAL = "_ray_internal"
TASK = "task"
BUSY = (
    "runs a method; it listens when that returns (on its own machine, `dap-mux attach pid:{}` "
    "does not wait for it)"
)
ELSEWHERE = "waits in Ray's breakpoint() on another machine: `dap-mux attach {}` reaches it"
_TRAILING_NUMBER = re.compile(r"\d+$", re.ASCII)


class Actors:
    """The actors of all jobs, each once asked to listen."""

    def __init__(self, debugpy: str) -> None:
        cloudpickle.register_pickle_by_value(arming)
        self._worker = ray._private.worker.global_worker  # noqa: SLF001
        self._accessor = ray._private.state.state._connect_and_get_accessor()  # noqa: SLF001
        self._bundle = ray.put(arming.rank_bundle(debugpy))
        self._node = ray.get_runtime_context().get_node_id()
        self._handles: dict[bytes, Any] = {}
        self._asked: dict[bytes, Any] = {}
        self._listening: dict[bytes, dict[str, Any]] = {}
        self._have_paused: set[bytes] = set()
        self._numbers: dict[str, dict[bytes, int]] = {}

    def look(self) -> list[dict[str, Any]]:
        """Return all ranks there are now."""
        actors = [each for each in self._table() if self._is_users(each)]
        by_worker = {each.address.worker_id: each for each in actors}
        for each in actors:
            self._number(group_of(each.class_name), each.actor_id, each.name)
            self._ask(each)
        self._take_answers()
        self._forget_all_but(set(by_worker))
        paused = {each.worker_address.worker_id: each for each in self._paused()}
        ranks = [self._actor(each, paused.get(each.address.worker_id)) for each in actors]
        tasks = [self._paused_task(each) for key, each in paused.items() if key not in by_worker]
        return sorted([*ranks, *tasks], key=lambda rank: (rank["group"], rank["rank"]))

    def has_news(self) -> bool:
        """Whether an actor has responded since the last look."""
        asked = [ref for key, ref in self._asked.items() if key not in self._listening]
        return bool(asked and ray.wait(asked, timeout=0)[0])

    def release(self, limit: float) -> None:
        """Let every actor close its port, within `limit` seconds."""
        asked = [
            self._handles[worker].__ray_call__.remote(arming.disarm_actor, armed)
            for worker, armed in self._asked.items()
        ]
        if asked:
            ray.wait(asked, num_returns=len(asked), timeout=limit)

    def _table(self) -> list[Any]:
        raw = self._accessor.get_actor_table(None, ALIVE)
        actors = [ActorTableData.FromString(each) for each in raw]
        return sorted(actors, key=lambda each: (each.start_time, each.actor_id))

    def _is_users(self, actor: Any) -> bool:
        is_python = actor.function_descriptor.HasField("python_function_descriptor")
        return is_python and not actor.ray_namespace.startswith(INTERNAL)

    def _number(self, group: str, owner: bytes, name: str = "") -> int:
        """Return the number in its group: that at the end of its name, else the lowest free."""
        numbers = self._numbers.setdefault(group, {})
        if owner not in numbers:
            wanted = _TRAILING_NUMBER.search(name)
            number, taken = int(wanted[0]) if wanted else 0, set(numbers.values())
            while number in taken:
                number += 1
            numbers[owner] = number
        return numbers[owner]

    def _ask(self, actor: Any) -> None:
        """Ask it to listen, once for each of its processes."""
        worker = actor.address.worker_id
        if worker in self._asked:
            return
        handle = self._handles[worker] = self._handle_of(actor)
        self._asked[worker] = handle.__ray_call__.remote(arming.arm_actor, self._bundle)

    def _handle_of(self, actor: Any) -> Any:
        """Return a handle to any actor; by Ray's API there are such for named ones alone."""
        handle = ActorHandle(
            actor_id=actor.actor_id,
            owner_id=actor.owner_address.worker_id,
            owner_address=actor.owner_address,
            creation_job_id=actor.job_id,
            actor_language=PYTHON,
            actor_creation_task_function_descriptor=actor.function_descriptor,
            actor_cursor=b"\xff" * 8 + actor.actor_id + (1).to_bytes(4, "little"),
            name=actor.name,
            ray_namespace=actor.ray_namespace,
            is_detached=actor.is_detached,
            max_pending_calls=-1,
        )
        return self._worker.core_worker.deserialize_and_register_actor_handle(
            handle.SerializeToString(), None, True
        )

    def _take_answers(self) -> None:
        waiting = {ref: key for key, ref in self._asked.items() if key not in self._listening}
        if not waiting:
            return
        answered, _ = ray.wait([*waiting], num_returns=len(waiting), timeout=ANSWER_LIMIT_S)
        for ref in answered:
            self._listening[waiting[ref]] = _answer(ref)

    def _forget_all_but(self, workers: set[bytes]) -> None:
        for known in (self._handles, self._asked, self._listening):
            for gone in known.keys() - workers:
                del known[gone]

    def _paused(self) -> list[Any]:
        """Return the workers that wait in Ray's own breakpoint, or have: their port stays open."""
        table = [WorkerTableData.FromString(each) for each in self._accessor.get_worker_table()]
        alive = {each.worker_address.worker_id: each for each in table if each.is_alive}
        self._have_paused &= alive.keys()
        self._have_paused |= {key for key, each in alive.items() if each.num_paused_threads > 0}
        return [alive[key] for key in self._have_paused]

    def _actor(self, actor: Any, paused: Any | None) -> dict[str, Any]:
        rank = {
            "group": group_of(actor.class_name),
            "rank": self._numbers[group_of(actor.class_name)][actor.actor_id],
            "pid": actor.pid,
            "incarnation": actor.address.worker_id.hex(),
            "userThreads": True,
            "swallowsExceptions": True,
        }
        listening = self._listening.get(actor.address.worker_id)
        if listening is not None and "failed" in listening:
            return {**rank, "waits": f"cannot be debugged: {listening['failed']}"}
        if listening is not None:
            return {**rank, **self._address(actor.address, listening["port"])}
        if paused is not None and paused.debugger_port:
            return {**rank, **self._rays_address(paused)}
        return {**rank, "waits": BUSY.format(actor.pid)}

    def _paused_task(self, worker: Any) -> dict[str, Any]:
        address = worker.worker_address
        return {
            "group": TASK,
            "rank": self._number(TASK, address.worker_id),
            "pid": worker.pid,
            "incarnation": address.worker_id.hex(),
            "swallowsExceptions": True,
            **self._rays_address(worker),
        }

    def _address(self, address: Any, port: int) -> dict[str, Any]:
        """Return where a rank listens: on its own machine's loopback."""
        here = address.node_id.hex() == self._node
        return {"host": LOOPBACK if here else address.ip_address, "port": port}

    def _rays_address(self, worker: Any) -> dict[str, Any]:
        """Return where Ray's own breakpoint listens: at the address of its machine."""
        host, port = worker.worker_address.ip_address, worker.debugger_port
        if worker.worker_address.node_id.hex() == self._node:
            return {"host": host, "port": port}
        return {"waits": ELSEWHERE.format(f"{host}:{port}")}


def _answer(asked: Any) -> dict[str, Any]:
    """Return what `arm` returned, or why an actor `failed` to listen."""
    try:
        armed: dict[str, Any] = ray.get(asked)
    except Exception as error:  # noqa: BLE001  (whatever the actor's process raised)
        return {"failed": " ".join(str(error).split())[-400:]}
    return armed
