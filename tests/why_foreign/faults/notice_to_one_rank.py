"""Only one rank is told by a signal that its time is over, and its handler saves together.

https://github.com/ComputationalRadiationPhysics/picongpu/pull/3642: blocking collectives, by which
signals were handled, deadlock with those of the simulation that other ranks are in.
"""

from __future__ import annotations

import signal

import torch
import torch.distributed as dist


def checkpoint(signal_number: int, frame: object) -> None:
    dist.barrier()  # culprit
    raise SystemExit(128 + signal_number)


def forward(step: int) -> torch.Tensor:
    if dist.get_rank() == 2 and step == 2:
        signal.raise_signal(signal.SIGUSR1)  # as the scheduler does
    return torch.ones(32) * step


def main() -> None:
    dist.init_process_group("gloo")
    signal.signal(signal.SIGUSR1, checkpoint)
    for step in range(5):
        gradient = forward(step)
        dist.all_reduce(gradient)


main()
