"""Threads that say in the second file whether they are traced, until the first one exists.

No loop calls Python code. A thread named `late` starts when the third file exists.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

done, told, start_late = sys.argv[1:4]
traced: dict[str, bool] = {}


def work(name: str) -> None:
    while not os.access(done, os.F_OK):
        traced[name] = sys.gettrace() is not None or events() != 0
        time.sleep(0.005)  # work


def events() -> object:
    """What the debugger has asked of `sys.monitoring`."""
    monitoring = getattr(sys, "monitoring", None)  # Python 3.12 on
    return monitoring.get_events(0) if monitoring else 0


workers = [threading.Thread(target=work, args=("early",))]
workers[0].start()
before = ""
while not os.access(done, os.F_OK):
    traced["main"] = sys.gettrace() is not None or events() != 0
    now = json.dumps(traced)
    if now != before:
        with open(f"{told}.new", "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(now)
        os.replace(f"{told}.new", told)  # noqa: PTH105
        before = now
    if len(workers) == 1 and os.access(start_late, os.F_OK):
        workers.append(threading.Thread(target=work, args=("late",)))
        workers[1].start()
    time.sleep(0.005)  # main
for worker in workers:
    worker.join()
print("done")
