"""The faults of the jobs beside it: the job asks at a few places, and the environment says.

`WHY_FAULT` names the fault, `WHY_RANK` the rank that has it, and `WHY_STEP` the step. In the folder
`WHY_FOLDER` a fault writes the file `mark` when it is about to take effect, and each rank writes
how far it is into a file of its own. All wait before that step until there is a file `go`.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from array import array
from pathlib import Path
from typing import TypeAlias

from tests.why_score.jobs import blocking

FAULT = os.environ.get("WHY_FAULT", "")
RANK = int(os.environ.get("WHY_RANK", "0"))
STEP = int(os.environ.get("WHY_STEP", "3"))
FOLDER = Path(os.environ.get("WHY_FOLDER", "."))
STEPS = int(os.environ.get("WHY_STEPS", "1000000"))
LOOK_S = 0.01
SIZE = 256  # of a batch
FROM_OUTSIDE = ("killed", "out-of-memory", "stopped-process", "paused", "breakpoint")
"""Whoever started the job does these to it, once it is under way."""


Batches: TypeAlias = "queue.Queue[array[float]]"


class Shares:
    """What one rank tells of itself, and the faults that it has."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self._progress = (FOLDER / f"progress-{rank}").open("w", encoding="ascii")
        if FAULT in blocking.PREPARE:
            blocking.PREPARE[FAULT](FOLDER)

    def progress(self, step: int) -> None:
        """Say how far this rank is."""
        self._progress.seek(0)
        self._progress.write(f"{step}\n")
        self._progress.flush()
        while step == STEP and not (FOLDER / "go").exists():
            time.sleep(LOOK_S)
        if step == STEP and self.rank == RANK and FAULT in (*FROM_OUTSIDE, *blocking.PACES):
            mark()

    def has(self, fault: str, step: int, *, beside: int = 0) -> bool:
        """Whether the rank has this fault at this step; `beside`: or one of its next neighbours."""
        if fault != FAULT or step != STEP:
            return False
        ours = (self.rank - RANK) % self.size <= beside
        if ours:
            mark()
        return ours

    def all_have(self, fault: str, step: int) -> bool:
        """Whether every rank has this fault at this step."""
        return self.has(fault, step, beside=self.size)

    def at(self, place: str, step: int) -> None:
        """Let the fault of this place happen, if it is that of the rank and the step."""
        pace = blocking.PACES.get(FAULT, blocking.PACES["healthy"])
        if pace.place == place and step > 0:
            pace.take(self.rank, RANK)
        fault = blocking.FAULTS.get(FAULT)
        if fault is None or fault.place != place:
            return
        if self.rank == RANK and step == STEP:
            mark()
            fault.happen()

    def loaded(self) -> Batches:
        """Batches that a thread loads, ahead of the training."""
        batches: Batches = queue.Queue(maxsize=1)
        loading = (self, batches)
        threading.Thread(target=load_shards, args=loading, name="loader", daemon=True).start()
        return batches

    def tell(self, error: Exception) -> None:
        """What happened to this rank, for who looks at its log or into its folder."""
        sys.stderr.write(f"rank {self.rank}: {error}\n")
        sys.stderr.flush()
        (FOLDER / f"error-{self.rank}.json").write_text(json.dumps(str(error)), "utf-8")

    def steps(self) -> int:
        """How many steps this rank takes."""
        if FAULT == "early-end" and self.rank == RANK:
            return STEP
        if FAULT == "exit-hook":
            return STEP + 1
        return STEPS


def load_shards(shares: Shares, batches: Batches) -> None:
    """Read one shard after the other."""
    step = 0
    while True:
        shares.at("load", step)
        batches.put(array("d", range(SIZE)))
        step += 1


def mark() -> None:
    """Say that the fault is about to take effect."""
    (FOLDER / "mark").write_text(f"{time.time()}\n", encoding="ascii")


def wait_for_config() -> None:
    """Before the ranks meet: the fault of a rank that never comes."""
    own = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK")
    if FAULT != "never-joins" or own != str(RANK):
        return
    mark()
    while not (FOLDER / "config.json").exists():
        time.sleep(0.1)
