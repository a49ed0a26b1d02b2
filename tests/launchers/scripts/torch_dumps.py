"""A rank that leaves something behind: `torch_dumps.py pickle|json|mismatch|fail DIR`.

Rank 1 stays away from the second all_reduce, calls a barrier in its place, or fails.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d
from torch.distributed.elastic.multiprocessing.errors import record


def beyond() -> None:
    """Take part in what the culprit does not."""
    dist.all_reduce(torch.ones(3, 2))


def dump() -> None:
    """Write this rank's record once all others are in theirs."""
    thread = threading.Thread(target=beyond, daemon=True)
    if RANK != CULPRIT:
        thread.start()
    # A moment after a call has returned it is recorded as over; dumps are written minutes later.
    while len(recorded()) < (1 if RANK == CULPRIT else 2) or not recorded()[0]["retired"]:
        pass
    if HOW == "pickle":
        FOLDER.joinpath(f"trace_rank_{RANK}").write_bytes(_distributed_c10d._dump_fr_trace())
    else:
        said = _distributed_c10d._dump_fr_trace_json()
        FOLDER.joinpath(f"rank{RANK}.json").write_bytes(said)
    FOLDER.joinpath(f"{RANK}-has-written").touch()
    while len([*FOLDER.glob("*-has-written")]) < dist.get_world_size():
        pass
    os._exit(0)


def recorded() -> list[dict[str, object]]:
    """What the recorder has."""
    entries: list[dict[str, object]] = json.loads(_distributed_c10d._dump_fr_trace_json())[
        "entries"
    ]
    return entries


@record
def main() -> None:
    """Do as told."""
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(3))
    if HOW == "mismatch":
        dist.barrier() if RANK == CULPRIT else beyond()
    elif HOW == "fail":
        if RANK == CULPRIT:
            raise ValueError(f"shard-{RANK} is empty")
        beyond()
    else:
        dump()


CULPRIT = 1
HOW, FOLDER, RANK = sys.argv[1], Path(sys.argv[2]), int(os.environ["RANK"])
(FOLDER / str(RANK)).mkdir()
os.environ["TORCHELASTIC_ERROR_FILE"] = str(FOLDER / str(RANK) / "error.json")
main()
