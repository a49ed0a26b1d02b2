"""Workers of Ray and Dask among ranks, and what they wait for.

A worker's main thread belongs to its engine, whose loop wakes now and then. It is judged by the
thread that runs its task; without a task it is idle, whatever that loop does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.insight.why.evidence import Sample, Thread, stack_of

RAY: Final = "ray/_private/worker.py"
RAY_LOOP: Final = "main_loop"
RAY_EVENT_LOOP: Final = "AsyncIO Thread"
"""How names of threads begin that run an actor's coroutines."""
RAY_TASK: Final = ("actor_method_executor", "trace_and_execute")
"""What methods of an actor run in that are not on its main thread; the second is ours."""
DASK_WORKERS: Final = ("distributed/nanny.py", "distributed/cli/dask_worker.py")
DASK_WORKER: Final = "distributed/worker.py"
DASK_TASK: Final = "apply_function"
AWAITS: Final = {
    RAY: {"get": "ray.get", "wait": "ray.wait"},
    "distributed/client.py": {"gather": "gather", "result": "result", "wait": "wait"},
}


def awaited_result(stack: Stack) -> str:
    """Return the call by which this stack waits for the result of a task, "" for none."""
    for frame in stack:
        for path, calls in AWAITS.items():
            if frame.function in calls and frame.path.endswith(path):
                return calls[frame.function]
    return ""


def is_worker(main: Stack) -> bool:
    """Whether a main thread is an engine's worker's; one of Ray may run a task in its loop."""
    return any(_is_rays_loop(frame) or frame.path.endswith(DASK_WORKERS) for frame in main)


def is_in_loop(main: Stack) -> bool:
    """Whether a worker's main thread has no task itself."""
    return _is_rays_loop(main[-1]) or not any(_is_rays_loop(frame) for frame in main)


def _is_rays_loop(frame: Frame) -> bool:
    return frame.function == RAY_LOOP and frame.path.endswith(RAY)


def task_threads(sample: Sample) -> dict[str, tuple[Thread, Stack]]:
    """Return the threads beside the main one that run a task, by what tells them apart."""
    found = {}
    for thread in sample.threads:
        try:
            stack = () if thread.main else stack_of(sample, thread)
        except IndexError:
            continue
        if _runs_a_task(thread, stack):
            found[f"{thread.tid} {thread.name}"] = thread, stack
    return found


def longest_task(samples: Sequence[Sample]) -> str:
    """Return the key of the thread whose task has been at the fewest places, "" for none."""
    looks = [task_threads(sample) for sample in samples]
    keys = dict.fromkeys(key for look in looks for key in look)
    places = {key: {look[key][1] if key in look else () for look in looks} for key in keys}
    return min(places, key=lambda key: len(places[key]), default="")


def _runs_a_task(thread: Thread, stack: Stack) -> bool:
    for frame in stack:
        is_dask = frame.path.endswith(DASK_WORKER) and frame.function.startswith(DASK_TASK)
        if is_dask or frame.function in RAY_TASK:
            return True
    return thread.name.startswith(RAY_EVENT_LOOP) and not all(frame.library for frame in stack)
