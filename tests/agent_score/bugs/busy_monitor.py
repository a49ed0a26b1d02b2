"""Rank 3 has a thread that never waits: each small read gives it the interpreter for 5 ms.

Trains on records that are read one by one.
"""

from __future__ import annotations

import os
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

FEATURES, RECORDS, BATCH = 6, 4000, 80
WATCHED = {3}
RECORD = struct.Struct(f"{FEATURES}f")


class Monitor:
    """Looks whether somebody wants this rank to stop."""

    def __init__(self, flag: Path) -> None:
        self.flag = flag
        self.looks = 0
        threading.Thread(target=self.watch, name="monitor", daemon=True).start()

    def watch(self) -> None:
        while not self.is_told():  # BUG
            self.looks += 1  # BUG

    def is_told(self) -> bool:
        """Whether the flag is up; the file is looked for now and then."""
        return self.looks % 5_000_000 == 4_999_999 and self.flag.exists()  # BUG


def write_records(rank: int) -> Path:
    path = Path(tempfile.mkdtemp()) / "records"
    values = torch.randn(RECORDS, FEATURES, generator=torch.Generator().manual_seed(rank))
    path.write_bytes(b"".join(RECORD.pack(*each) for each in values.tolist()))
    return path


def records(path: Path) -> Iterator[tuple[float, ...]]:
    """Yield record after record, for ever."""
    file = os.open(path, os.O_RDONLY)
    while True:
        found = os.read(file, RECORD.size)  # BUG
        if found:
            yield RECORD.unpack(found)
        else:
            os.lseek(file, 0, os.SEEK_SET)


def batches(path: Path) -> Iterator[torch.Tensor]:
    source = records(path)
    while True:
        yield torch.tensor([next(source) for _ in range(BATCH)])  # BUG


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    path = write_records(rank)
    if rank in WATCHED:
        Monitor(path.with_name("stop"))  # BUG
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(FEATURES, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, inputs in enumerate(batches(path)):
        loss = (model(inputs).squeeze(1) - inputs.sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
