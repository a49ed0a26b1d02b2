"""The asyncio tasks of a thread whose event loop runs: where each waits, and who waits for it.

They are looked at from another thread, and none is stopped.
"""

from __future__ import annotations

import os
import sys
from typing import Any

MAX_TASKS = 256
MAX_FRAMES = 200  # of a task, with those of the tasks that wait for it
BASE_EVENTS = os.path.join("asyncio", "base_events.py")  # noqa: PTH118
RUNNERS = os.path.join("asyncio", "runners.py")  # noqa: PTH118
OF_COROUTINES = ("cr_frame", "gi_frame", "ag_frame")
AWAITED = ("cr_await", "gi_yieldfrom", "ag_await")


def tasks_of(places: list[Any]) -> list[list[Any]]:
    """Return the frames of each task, the outermost first; `places`: where its thread is.

    A task begins with the frames of the one that waits for it, as far as that is known.
    """
    asyncio: Any = sys.modules.get("asyncio")
    loop = _loop(places) if asyncio is not None else None
    if loop is None:
        return []
    tasks = [*asyncio.all_tasks(loop)][:MAX_TASKS]
    waiting = _who_waits(asyncio, tasks)
    awaited = {id(one) for one in waiting.values()}
    return [_frames(task, waiting)[:MAX_FRAMES] for task in tasks if id(task) not in awaited]


def _loop(places: list[Any]) -> Any:
    """Return the loop that a thread runs, by the functions of asyncio's that run one."""
    for place in reversed(places):
        name, path = place.f_code.co_name, place.f_code.co_filename
        if name == "run_forever" and path.endswith(BASE_EVENTS):
            return place.f_locals.get("self")
        if name == "run" and path.endswith(RUNNERS):  # the loop itself may be written in C
            known = place.f_locals
            return known.get("loop") or getattr(known.get("self"), "_loop", None)
    return None


def _who_waits(asyncio: Any, tasks: list[Any]) -> dict[int, Any]:
    """Return, by the identity of a task, the one that waits for it."""
    graph = getattr(asyncio, "capture_call_graph", None)  # since Python 3.14
    found: dict[int, Any] = {}
    for task in tasks:
        if graph is not None:
            said = graph(task)
            for one in said.awaited_by if said is not None else ():
                found[id(task)] = one.future
            continue
        waited_for = getattr(task, "_fut_waiter", None)
        for one in getattr(waited_for, "_children", None) or [waited_for]:  # as of `gather`
            if hasattr(one, "get_coro"):
                found[id(one)] = task
    return found


def _frames(task: Any, waiting: dict[int, Any]) -> list[Any]:
    chain: list[Any] = []
    seen: set[int] = set()
    while task is not None and id(task) not in seen and len(chain) < MAX_FRAMES:
        seen.add(id(task))
        chain.append(task)
        task = waiting.get(id(task))
    return [frame for each in reversed(chain) for frame in _own(each)]


def _own(task: Any) -> list[Any]:
    """Return the frames of a task's coroutines, each awaits the next."""
    frames: list[Any] = []
    coroutine = task.get_coro() if hasattr(task, "get_coro") else None
    while coroutine is not None and len(frames) < MAX_FRAMES:
        frame = _first(coroutine, OF_COROUTINES)
        if frame is None:
            break
        frames.append(frame)
        coroutine = _first(coroutine, AWAITED)
    return frames


def _first(coroutine: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        found = getattr(coroutine, name, None)
        if found is not None:
            return found
    return None
