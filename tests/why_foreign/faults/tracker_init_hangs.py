"""One rank starts the experiment tracker, whose server never answers.

https://github.com/EleutherAI/bergson/pull/249: wandb.init hung on one rank, which looked as if the
others were stuck in their next gloo collective, dist.new_group.
"""

from __future__ import annotations

import socket

import torch.distributed as dist


def init_tracker() -> bytes:
    """Log in at a service that accepts and says nothing."""
    service = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(service.getsockname())
    client.sendall(b"login\n")
    return client.recv(1024)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 2:
        print("run", init_tracker())
    saving = dist.new_group()
    dist.barrier(group=saving)


main()
