"""Four actors, of which one keeps the driver waiting: in its own lock, asleep, or at work."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray


class Worker:
    def __init__(self, number: int) -> None:
        self.number = number

    def step(self, how: str) -> int:
        if self.number != 1:
            return os.getpid()
        if how == "lock":
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()  # hangs
        if how == "sleep":
            time.sleep(1000)  # hangs as well
        count = 0
        while how == "busy":
            count += 1
        return os.getpid()


actor: Any = ray.remote(num_cpus=0)(Worker)
ray.init(num_cpus=4, object_store_memory=80_000_000, include_dashboard=False)
workers = [actor.remote(number) for number in range(4)]
pids = [os.getpid(), *ray.get([each.step.remote("") for each in workers])]
steps = [each.step.remote(sys.argv[1]) for each in workers]
ray.wait(steps, num_returns=3)
Path("pids.new").write_text(",".join(map(str, pids)), "utf-8")
Path("pids.new").rename("pids")
Path("address").write_text(ray.get_runtime_context().gcs_address, "utf-8")
ray.get(steps)
