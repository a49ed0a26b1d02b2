"""Libraries that say which rank a process is, where no launcher has: torch, mpi4py, jax, Dask, …"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from dap_mux.rank.environ import number_in
from dap_mux.rank.pickled_code import keep_file_names
from dap_mux.rank.ready import RENDEZVOUS, write_ready_file
from dap_mux.rank.starter import starter_is_gone

# The driver of a Dask job, which is the rank `client:0`: it waits for its cluster to be debugged.
#
# The driver becomes a rank before it starts a cluster, or is a client of one. Each cluster that
# it meets is named in the rendezvous folder, and the session joins it; only then does the driver
# go on, so no task runs before its worker is a rank. A cluster in the driver's own process has no
# address for others, and needs none: its tasks run in this rank.

POLL_INTERVAL_S = 0.05
JOIN_TIMEOUT_S = 120.0  # of a session on a busy machine, which has to reach every worker
OWN_PROCESS = "inproc://"
DRIVER_THREADS = ["MainThread", "*Dask-*-Threads*"]
"""The threads that run the user's code: tasks run in the driver where workers do."""
_joined: set[str] = set()


def watch_cluster(module: Any, tell: Tell) -> None:
    """Have a process that starts a cluster (`LocalCluster` and its like) become a rank."""
    _tell_before(module.Cluster, tell)


def watch_client(module: Any, tell: Tell) -> None:
    """Have a client of a cluster become a rank, and wait for the session to join that cluster."""
    _tell_before(module.Client, tell)
    connect = module.Client._start  # noqa: SLF001

    @functools.wraps(connect)
    async def start(self: Any, *arguments: Any, **options: Any) -> Any:
        result = await connect(self, *arguments, **options)
        address = getattr(self.scheduler, "address", None)
        if address and not address.startswith(OWN_PROCESS) and address not in _joined:
            _joined.add(address)
            await _let_session_join(address)
        return result

    module.Client._start = start  # noqa: SLF001


def _tell_before(kind: Any, tell: Tell) -> None:
    initialize = kind.__init__

    @functools.wraps(initialize)
    def wrapped(self: Any, *arguments: Any, **options: Any) -> None:
        keep_file_names()
        tell("dask", 0, 1)
        initialize(self, *arguments, **options)

    kind.__init__ = wrapped


async def _let_session_join(address: str) -> None:
    """Name the cluster, and wait until the session has joined it, has failed to, or has gone."""
    cluster = Path(os.environ[RENDEZVOUS]) / f"{os.getpid()}-{len(_joined)}.cluster"
    if cluster.parent.is_dir():  # it is not on another host
        record = {"endpoint": f"dask:{address}", "python": sys.executable, "pid": os.getpid()}
        write_ready_file(cluster, record)
    until = time.monotonic() + JOIN_TIMEOUT_S
    while _awaits_session(cluster) and time.monotonic() < until:  # noqa: ASYNC110  (another process is waited for)
        await asyncio.sleep(POLL_INTERVAL_S)


def _awaits_session(cluster: Path) -> bool:
    """Whether the session is there, and has not said yet that the driver may go on."""
    here = cluster.parent.is_dir() and not starter_is_gone(os.environ)
    return here and not cluster.with_suffix(".joined").exists()


MONARCH = "monarch._src.actor.proc_mesh"
MONARCH_CORE = "monarch._rust_bindings"
MONARCH_LIMITS = {"HYPERACTOR_MESH_SUPERVISION_WATCHDOG_TIMEOUT": "1day"}
"""Time limits of Monarch's that a stopped rank exceeds; each is read when its core is loaded."""
RAY = "ray._private.worker"
Tell: TypeAlias = Callable[[str, int, int], object]
"""Called with the library's name, this process's rank and the number of ranks."""
_Given: TypeAlias = "tuple[int, int] | None"


# A process that is no rank yet watches for the start of these libraries, and becomes a rank in it:
# before the library meets the other ranks where the program passes its rank, else right behind it,
# in any case before the first collective. Nothing of them is imported here.
def watch_import(loader: Any, name: str, tell: Callable[..., Any]) -> None:
    """Have `tell` called once the module `name`, which `loader` is about to run, starts its ranks.

    A loader that lets nothing be set on it stays as it is, and the process is no rank.
    """
    if name == MONARCH_CORE:
        os.environ.update(MONARCH_LIMITS)
        return
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        with suppress(AttributeError):
            del loader.exec_module
        execute(module)
        if module.__name__ == name:
            with suppress(Exception):  # the program's import goes on whatever has changed there
                _WATCH[name](module, tell)

    with suppress(AttributeError):
        loader.exec_module = exec_module


def _watch_torch(module: Any, tell: Tell) -> None:
    """Watch `init_process_group` of torch.distributed."""

    def given(arguments: dict[str, Any]) -> _Given:
        rank, size = arguments.get("rank", -1), arguments.get("world_size", -1)
        return _both(
            number_in(os.environ, "RANK") if rank in (None, -1) else rank,
            number_in(os.environ, "WORLD_SIZE") if size in (None, -1) else size,
        )

    def known() -> _Given:
        return _both(module.get_rank(), module.get_world_size())

    _wrap(module, "init_process_group", given, known, functools.partial(tell, "torch"))


def _watch_jax(module: Any, tell: Tell) -> None:
    """Watch `jax.distributed.initialize`."""

    def given(arguments: dict[str, Any]) -> _Given:
        return _both(arguments.get("process_id"), arguments.get("num_processes"))

    def known() -> _Given:
        state: Any = sys.modules["jax._src.distributed"].global_state
        return _both(state.process_id, state.num_processes)

    _wrap(module, "initialize", given, known, functools.partial(tell, "jax"))


def _watch_mpi(module: Any, tell: Tell) -> None:
    """Watch `mpi4py.MPI`, which starts MPI in its import unless it is told otherwise.

    A Python alone is rank 0 of 1 there, whatever it is: it has said nothing by that.
    """

    def known() -> _Given:
        size = module.COMM_WORLD.Get_size()
        return _both(module.COMM_WORLD.Get_rank(), size) if size > 1 else None

    said = functools.partial(tell, "mpi4py")
    if module.Is_initialized():
        _tell(known, said)
        return
    for name in ("Init", "Init_thread"):
        _wrap(module, name, lambda _: None, known, said)


def _watch_ray(module: Any, tell: Callable[[Any, str], Any]) -> None:
    """Watch `ray.init`: Ray imports and calls what RAY_RUNTIME_ENV_HOOK names.

    No other process has this hook, so the variable is the user's own while Ray starts any.
    """
    variable = "RAY_RUNTIME_ENV_HOOK"
    users = os.environ.get(variable)
    hook: Any = ModuleType("dap_mux_ray")
    sys.modules[hook.__name__] = hook

    def adapt(runtime_env: Any) -> Any:
        os.environ.pop(variable)
        if users:
            os.environ[variable] = users
        return tell(runtime_env, users or "")

    def name_our_hook() -> None:
        os.environ[variable] = f"{hook.__name__}.adapt"

    hook.adapt = adapt
    name_our_hook()
    module._post_init_hooks.append(name_our_hook)  # noqa: SLF001


_WATCH: dict[str, Callable[[Any, Any], None]] = {
    "distributed.client": watch_client,
    "distributed.deploy.cluster": watch_cluster,
    "jax.distributed": _watch_jax,
    MONARCH: lambda module, tell: tell(module),  # by which a driver spawns procs
    "mpi4py.MPI": _watch_mpi,
    RAY: _watch_ray,
    "torch.distributed.distributed_c10d": _watch_torch,
}


def _wrap(
    module: Any,
    name: str,
    given: Callable[[dict[str, Any]], _Given],
    known: Callable[[], _Given],
    tell: Callable[[int, int], object],
) -> None:
    """Let a function say the rank: by its arguments (`given`), or when it has returned."""
    function = getattr(module, name)
    signature = None
    with suppress(ValueError, TypeError):  # a function of C need not have one
        signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        said: _Given = None
        with suppress(TypeError):  # wrong arguments are the function's own to refuse
            bound = signature.bind(*arguments, **options) if signature else None
            said = given(bound.arguments) if bound else None
        if said is not None:
            tell(*said)
        result = function(*arguments, **options)
        if said is None:
            _tell(known, tell)
        return result

    setattr(module, name, wrapped)


def _tell(known: Callable[[], _Given], tell: Callable[[int, int], object]) -> None:
    said: _Given = None
    with suppress(Exception):
        said = known()
    if said is not None:
        tell(*said)


def _both(rank: object, size: object) -> _Given:
    """A rank and the number of ranks, where they are one."""
    if isinstance(rank, int) and isinstance(size, int) and 0 <= rank < size:
        return int(rank), int(size)
    return None
