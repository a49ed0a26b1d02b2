"""A worker as task schedulers have it: task threads, one of them idle, and threads of its own."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

TASKS = 2
everybody, both = threading.Barrier(TASKS + 1), threading.Barrier(TASKS)


def begin() -> None:
    everybody.wait()


def work(shard: int) -> int:
    both.wait()
    total = shard + 1  # work
    print("total of", shard)
    return total


def main() -> None:
    threading.Thread(target=queue.Queue[int]().get, name="monitor", daemon=True).start()
    with ThreadPoolExecutor(TASKS + 1, thread_name_prefix="Task-Threads") as pool:
        for one in [pool.submit(begin) for _ in range(TASKS + 1)]:
            one.result()
        print(sum(pool.map(work, range(TASKS))))


main()
