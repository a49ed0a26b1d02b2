"""A job that has its ranks when it is told to, and others later: `late_ranks.py ENGINE`.

A cluster's address is in the file `address` before.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

RANKS = 4


def told(name: str) -> None:
    """Wait for a file of this name."""
    while not Path(name).exists():
        time.sleep(0.02)


def begun(address: str = "") -> None:
    """Say so, and wait until ranks are wanted."""
    Path("address.part").write_text(address, "utf-8")
    Path("address.part").rename("address")
    told("go")


def of_ray() -> Iterator[list[int]]:
    """Actors; the later ones are the same, which Ray restarts."""
    import ray

    class Worker:
        def pid(self) -> int:
            return os.getpid()

    # A call may meet its actor dying, and again not yet restarted: one try more was not enough.
    actor = ray.remote(num_cpus=0, max_restarts=1, max_task_retries=-1)(Worker)
    ray.init(num_cpus=2, object_store_memory=80_000_000, include_dashboard=False)
    begun(ray.get_runtime_context().gcs_address)
    workers = [actor.remote() for _ in range(RANKS)]
    first = ray.get([each.pid.remote() for each in workers])
    yield first
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    yield ray.get([each.pid.remote() for each in workers])


def of_dask() -> Iterator[list[int]]:
    """Workers; the later ones are more of them."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        begun(cluster.scheduler_address)
        cluster.scale(RANKS)
        client.wait_for_workers(RANKS)
        yield [*client.run(os.getpid).values()]
        cluster.scale(2 * RANKS)
        client.wait_for_workers(2 * RANKS)
        yield [*client.run(os.getpid).values()]


def of_monarch() -> Iterator[list[int]]:
    """Procs; the later ones are of another mesh."""
    from monarch.actor import Actor, endpoint, this_host

    class Worker(Actor):
        @endpoint
        def pid(self) -> int:
            return os.getpid()

    begun()
    for name in ("early", "late"):
        procs = this_host().spawn_procs({"at": RANKS}, name=name)
        yield [*procs.spawn(f"{name}_worker", Worker).pid.call().get().values()]


def main() -> None:
    for pids in {"ray": of_ray, "dask": of_dask, "monarch": of_monarch}[sys.argv[1]]():
        print("answered", len(set(pids)), flush=True)
        told("more")


if __name__ == "__main__":
    main()
