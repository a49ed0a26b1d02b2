"""The training loop of data_parallel.py, but one rank waits for data that never comes.

    dap-mux run -n 4 --no-wait examples/hang.py

`docs/hang.md` finds out which rank that is, and what it waits for. `touch shard-2` ends the wait.
"""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

training: Any = importlib.import_module("data_parallel")  # beside this file
load_batch = training.load_batch
loaded: list[int] = []  # the steps whose batches are here


def load_complete_batch(rank: int, step: int) -> Any:
    """The batch of one rank at one step, once its shard is complete."""
    shard = Path(f"shard-{rank}")
    while rank == 2 and step >= 3 and not shard.exists():
        time.sleep(0.5)
    loaded.append(step)
    return load_batch(rank, step)


training.load_batch = load_complete_batch

if __name__ == "__main__":
    training.main()
