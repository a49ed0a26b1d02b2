"""Four ranks in a loop of collectives, of which rank 2 ends as the first argument says.

The kinds are those that users report of `ChildFailedError` (pytorch#113546) and that studies of
failed jobs count: exceptions, exits without a word, signals, lack of memory, what fails at start.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

KIND, STYLE = sys.argv[1:3]
CULPRIT, RANKS, STEPS = 2, 4, 400
NUMBERS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


def early(rank: int) -> None:
    """What fails before the ranks have met."""
    if rank != CULPRIT:
        return
    if KIND == "import":
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401
    if KIND == "syntax":
        sys.path.insert(0, str(Path.cwd()))
        Path("broken_settings.py").write_text("rate = = 1\n", "utf-8")
        import broken_settings  # type: ignore[import-not-found]  # noqa: F401
    if KIND == "port":
        taken = socket.create_server(("127.0.0.1", 0))
        socket.create_server(taken.getsockname())  # culprit
    if KIND == "config":
        raise SystemExit("no such configuration: large.toml")
    if KIND == "gone":
        sys.exit(0)


def step(rank: int, number: int) -> None:
    """What fails in the middle of the work."""
    if rank != CULPRIT or number != 3:
        return
    print("shard 7 of 8 has no rows", flush=True)
    batch: list[int] = []
    if KIND == "value":
        raise ValueError(f"no rows in a batch of {len(batch)}")  # culprit
    if KIND == "index":
        batch[number] += 1  # culprit
    if KIND == "library":
        int("one", base=10 + len(batch))  # culprit
    if KIND == "assert":
        assert batch, "empty batch"  # culprit
    exhaust(batch)
    die()


def exhaust(batch: list[int]) -> None:
    """What ends for want of something."""
    if KIND == "recursion":
        deeper(0)
    if KIND == "cuda":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")  # culprit
    if KIND == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        bytearray((16 << 30) + len(batch))  # culprit


def die() -> None:
    """What ends a process without an exception."""
    if KIND == "thread":
        thread = threading.Thread(target=lambda: os._exit(7))  # culprit
        thread.start()
        thread.join()
    if KIND == "exit":
        sys.exit(1)  # culprit
    if KIND == "_exit":
        os._exit(3)  # culprit
    if KIND == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)  # culprit
    if KIND == "abort":
        os.abort()  # culprit
    if KIND == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


def deeper(depth: int) -> int:
    return deeper(depth + 1)  # culprit


def work(rank: int, reduce: Any) -> None:
    for number in range(STEPS):
        if rank == 0:
            print("step", number, flush=True)
        step(rank, number)
        reduce(number)
        time.sleep(0.01)


def with_torch(rank: int, size: int) -> None:
    early(rank)
    import torch
    from torch import distributed

    distributed.init_process_group("gloo", rank=rank, world_size=size)

    def reduce(number: int) -> None:
        distributed.all_reduce(torch.ones(number + 1))

    work(rank, reduce)


def with_sockets(rank: int, size: int) -> None:
    """A sum over TCP: rank 0 collects and answers."""
    early(rank)
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        with socket.create_server(address) as server:
            peers = [server.accept()[0] for _ in range(1, size)]
    else:
        peers = [joined(address)]

    def reduce(number: int) -> None:
        if rank:
            peers[0].sendall(bytes([number % 256]))
            received(peers[0])
            return
        total = sum(received(peer) for peer in peers)
        for peer in peers:
            peer.sendall(bytes([total % 256]))

    work(rank, reduce)


def received(peer: socket.socket) -> int:
    data = peer.recv(1)
    if not data:
        raise ConnectionResetError("Connection closed by peer")
    return data[0]


def joined(address: tuple[str, int]) -> socket.socket:
    peer = socket.socket()
    while peer.connect_ex(address):
        peer.close()
        time.sleep(0.02)  # rank 0 has not come that far
        peer = socket.socket()
    return peer


def own_rank() -> int:
    return int(next(os.environ[name] for name in NUMBERS if name in os.environ))


def with_mpi() -> None:
    early(own_rank())
    from mpi4py import MPI

    work(MPI.COMM_WORLD.rank, MPI.COMM_WORLD.allreduce)


def with_lightning() -> None:
    """The main process is rank 0, and starts the others by the same command."""
    early(int(os.environ.get("LOCAL_RANK", "0")))
    import lightning
    import torch

    class Line(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any, number: int) -> Any:
            if self.global_rank == 0:
                print("step", number, flush=True)
            step(self.global_rank, number)
            time.sleep(0.01)
            return self.layer(batch).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    lightning.Trainer(
        accelerator="cpu",
        devices=RANKS,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    ).fit(Line(), torch.utils.data.DataLoader(torch.ones(RANKS * STEPS, 1)))


def main() -> None:
    if STYLE == "mpi":
        with_mpi()
    elif STYLE == "lightning":
        with_lightning()
    elif STYLE == "spawn":
        from torch import multiprocessing

        multiprocessing.spawn(with_torch, (RANKS,), nprocs=RANKS)
    else:
        start = with_torch if STYLE == "torch" else with_sockets
        start(own_rank(), RANKS)


if __name__ == "__main__":
    main()
