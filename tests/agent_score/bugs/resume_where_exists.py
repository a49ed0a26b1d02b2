"""Each rank looks by itself whether there is a checkpoint: rank 4 sees none and skips a bcast.

Gradient descent that continues from a checkpoint, with a scratch disk on every node.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from mini_mpi import Comm

PARAMETERS = 10
KEEP_ON = (0, 1, 2, 3, 5, 6, 7)  # where the job before this one has been


class Scratch:
    """The disk of one node."""

    def __init__(self, rank: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"scratch-{rank}-"))
        self.checkpoint = self.folder / "checkpoint.json"

    def write(self, state: dict[str, Any]) -> None:
        self.checkpoint.write_text(json.dumps(state), encoding="utf-8")

    def read(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.checkpoint.read_text(encoding="utf-8"))
        return state


def previous_job(scratch: Scratch, rank: int) -> None:
    """What an earlier job has left."""
    if rank in KEEP_ON:
        scratch.write({"step": 40, "weights": [0.5] * PARAMETERS})


def resumed(comm: Comm, scratch: Scratch) -> tuple[int, list[float]]:
    """The step and weights to go on from: those of rank 0, for all."""
    if scratch.checkpoint.exists():  # BUG
        state = comm.bcast(scratch.read() if comm.rank == 0 else None, tag="resume")
        versions = comm.gather(state["step"], tag="versions")
        comm.bcast(versions, tag="versions")
        return state["step"], state["weights"]
    return 0, [0.0] * PARAMETERS  # BUG


def gradient(rank: int, weights: list[float]) -> list[float]:
    return [weight - (i + 0.1 * rank) for i, weight in enumerate(weights)]


def main() -> None:
    comm = Comm()
    scratch = Scratch(comm.rank)
    previous_job(scratch, comm.rank)
    step, weights = resumed(comm, scratch)
    while step < 100_000:
        total = comm.allreduce(gradient(comm.rank, weights))
        weights = [w - 0.05 * g / comm.size for w, g in zip(weights, total, strict=True)]
        if comm.rank == 0:
            print(f"step {step}: {weights[-1]:.4f}", flush=True)
        if step % 20 == 0:
            scratch.write({"step": step, "weights": weights})
        step += 1
        time.sleep(0.1)


if __name__ == "__main__":
    main()
