"""All ranks compile for a quarter of an hour before their first collective.

https://github.com/pytorch/pytorch/issues/118492: torch.compile seems to compile forever, and does
finish: after 402 seconds in this case.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

COMPILING_S = 900


def kernel(number: int) -> str:
    """The source of a kernel: about a tenth of a second of work for the compiler."""
    lines = (f"    x{line} = x{line - 1} * {number} + {line}" for line in range(1, 4000))
    return f"def kernel_{number}(x0):\n" + "\n".join(lines)


def compile_all() -> int:
    began, number = time.monotonic(), 0
    while time.monotonic() - began < COMPILING_S:
        compile(kernel(number), "kernel", "exec")
        number += 1
    return number


def main() -> None:
    dist.init_process_group("gloo")
    kernels = compile_all()
    while True:
        dist.all_reduce(torch.tensor([kernels]))
        time.sleep(0.1)


main()
