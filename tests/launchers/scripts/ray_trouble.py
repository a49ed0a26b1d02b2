"""Four actors of Ray: of one an exception, of two a breakpoint() in their code, one may restart."""

import os
from typing import Any

import ray


class Worker:
    def __init__(self, number: int) -> None:
        self.number = number

    def divide(self, by: int) -> float:
        share = self.number / by
        self.last = share
        return share

    def look(self) -> int:
        seen = self.number * 7
        breakpoint()  # noqa: T100
        return seen


actor: Any = ray.remote(num_cpus=0, max_restarts=1, max_task_retries=1)(Worker)


def set_up() -> None:
    os.environ["SET_UP"] = "by the user"


def told() -> tuple[str | None, str | None]:
    return os.environ.get("SET_UP"), os.environ.get("HOOKED")


task: Any = ray.remote(num_cpus=0)(told)
ray.init(
    num_cpus=2,
    object_store_memory=80_000_000,
    include_dashboard=False,
    runtime_env={"worker_process_setup_hook": set_up},
)
workers = [actor.remote(number) for number in range(4)]
print("told", *ray.get(task.remote()))
try:
    ray.get(workers[3].divide.remote(0))
except ZeroDivisionError as error:
    print("error", isinstance(error, ZeroDivisionError))
print("looked", *ray.get([each.look.remote() for each in workers[:2]]))
print("shares", *ray.get([each.divide.remote(2) for each in workers]))
