"""A job of Ray that others have started: actors without names, tasks in Ray's own breakpoint."""

import sys
import time
from pathlib import Path
from typing import Any

import ray


class Worker:
    def __init__(self, number: int) -> None:
        self.number = number

    def work(self, step: int) -> int:
        value = self.number * 100 + step
        self.last = value  # here
        return value


class AsyncWorker(Worker):
    async def work(self, step: int) -> int:  # type: ignore[override]
        value = self.number * 100 + step
        self.last = value  # async
        return value


class Busy:
    def wait(self) -> None:
        while not Path("enough").exists():
            time.sleep(0.05)  # busy


def look(number: int) -> int:
    found = number * 7
    breakpoint()  # noqa: T100
    return found


def fail(number: int) -> float:
    return number / 0


def port(_: Any) -> int:
    """Where Ray believes that a debugger may attach."""
    return int(ray._private.worker.global_worker.debugger_port)


actor: Any = ray.remote(num_cpus=0)(Worker)
async_actor: Any = ray.remote(num_cpus=0)(AsyncWorker)
task: Any = ray.remote(num_cpus=0.5)(look)
failing_task: Any = ray.remote(num_cpus=0.5, max_retries=0)(fail)
ray.init(num_cpus=2, object_store_memory=80_000_000, include_dashboard=False)
workers = [actor.remote(0), actor.remote(1), actor.remote(2)]
workers += [actor.options(max_concurrency=2).remote(3), async_actor.remote(4)]
waits = ray.remote(num_cpus=0)(Busy).remote().wait.remote()
looks, failing = [], []
if "--looks" in sys.argv:
    looks, failing = [task.remote(number) for number in range(2)], [failing_task.remote(1)]
running = {each.work.remote(1): (number, 1) for number, each in enumerate(workers)}
Path("address.part").write_text(ray.get_runtime_context().gcs_address)
Path("address.part").rename("address")
while running:  # no worker waits for another one, which may be stopped
    # One at a time, it would nearly always be the same worker's.
    for done in ray.wait([*running], num_returns=len(running), timeout=0.05)[0]:
        number, step = running.pop(done)
        assert ray.get(done) == number * 100 + step
        if not Path("enough").exists():
            running[workers[number].work.remote(step + 1)] = number, step + 1
    time.sleep(0.01)
print("looked", ray.get(looks) or ray.get([each.__ray_call__.remote(port) for each in workers]))
try:
    ray.get(failing)
except ZeroDivisionError:
    print("failed")
