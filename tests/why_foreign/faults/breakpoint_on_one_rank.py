"""A breakpoint is left in the code of one rank, and nobody connects to its debugger.

https://github.com/pytorch/torchtitan/issues/652: a breakpoint on one rank, whose terminal is not
shown, always hangs; the others wait for that rank.
"""

from __future__ import annotations

import code
import socket

import torch
import torch.distributed as dist


def remote_breakpoint(**names: object) -> None:
    """Wait for somebody who debugs, and give him a console."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection, _ = server.accept()  # culprit
    terminal = connection.makefile("rw")
    code.interact(readfunc=lambda _: terminal.readline(), local=names)


def forward(x: torch.Tensor) -> torch.Tensor:
    if dist.get_rank() == 2:
        remote_breakpoint(x=x)  # culprit: breakpoint
    return x * 2


def main() -> None:
    dist.init_process_group("gloo")
    for _ in range(3):
        dist.all_reduce(forward(torch.ones(4)))


main()
