"""A child is forked after the threads of OpenMP were started, and computes.

https://github.com/pytorch/pytorch/issues/17199: a program never ends that calls a function in the
main process, and then in a forked one; without the first call it does.
"""

from __future__ import annotations

import multiprocessing

import torch
import torch.distributed as dist

CONTEXT = multiprocessing.get_context("fork")


def features() -> float:
    x = torch.ones(400, 400).exp()
    return float((x + x.sin()).sum())  # culprit: child


def preprocess(warm: bool) -> None:
    if warm:
        features()
    child = CONTEXT.Process(target=features)
    child.start()
    child.join()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(4)
    preprocess(warm=dist.get_rank() == 2)  # culprit: call
    dist.barrier()


main()
