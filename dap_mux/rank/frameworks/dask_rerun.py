"""`PYTHON dask_rerun.py ADDRESS KEY [check]`: run one task of a Dask cluster here, with its inputs.

Its process is a rank that stops at the first line of the task's function, and where it fails. The
cluster runs on: this is one more client of it, which gathers the inputs.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any, NoReturn

from distributed import Client

CONNECT_TIMEOUT_S = 20.0
MAX_KEYS = 10


def main(address: str, key: str, check: str = "") -> None:
    """Run the task to its end; with `check` only see whether it is there."""
    sys.path[0] = str(Path.cwd())  # where the task's modules are, rather than our own
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT_S)
    except (OSError, ValueError) as error:
        _fail(f"no Dask scheduler at {address}: {error}")
    with client:
        task, failed = client.run_on_scheduler(task_that_ran, key)
        if task is None:
            known = ", ".join(failed) or "none"
            _fail(
                f"no task {key} in the cluster, which forgets a task when its driver does; "
                f"failed tasks: {known}"
            )
        if check:
            return
        node, inputs = task_with_inputs(client, task)
        _stop_at_first_line()
        print(f"result: {node(inputs)!r}")  # noqa: T201


def task_that_ran(key: str, dask_scheduler: Any = None) -> tuple[Any, list[str]]:
    """Return the task of this key, or the one before it whose failure it shares.

    None where there is no such task, and the keys of those that have failed.
    """
    tasks = dask_scheduler.tasks.values()
    named = next((task for task in tasks if str(task.key) == key), None)
    if named is not None:
        return (named.exception_blame or named).key, []
    return None, [str(task.key) for task in tasks if task.exception_blame is task][:MAX_KEYS]


def task_with_inputs(client: Client, task: Any) -> tuple[Any, dict[Any, Any]]:
    """Return what runs the task, and its inputs by key.

    `Client.recreate_task_locally` gathers no inputs in distributed 2026.8.0: it fails.
    """
    pickled = sys.modules.get("dap_mux.rank.pickled_code")
    if pickled is not None:
        pickled.keep_file_names()
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)  # it prints all of the failure
    try:
        node = client.sync(client.scheduler.get_runspec, key=task)
    except (ImportError, AttributeError) as error:
        _fail(
            f"the code of {task} cannot be loaded here ({error}): call this where its driver was "
            "started, or set PYTHONPATH"
        )
    gathered = client.sync(client.scheduler.gather, keys=[*node.dependencies])
    if gathered["status"] != "OK":
        _fail(f"the cluster has lost inputs of {task}: {', '.join(map(str, gathered['keys']))}")
    return node, gathered["data"]


def _stop_at_first_line() -> None:
    """Stop at the first line of the user's that runs from now on."""
    waiting = sys.modules.get("dap_mux.rank.debugger_wait")
    if waiting is not None:
        waiting.stop_at_first_line()


def _fail(text: str) -> NoReturn:
    print(text, file=sys.stderr)  # noqa: T201
    sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
