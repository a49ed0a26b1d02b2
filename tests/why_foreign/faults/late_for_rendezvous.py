"""A rank that must first download its shard never gets to where the ranks meet.

https://github.com/meta-pytorch/data/issues/659: ranks time out waiting for one that arrives late,
because it loads data through http first.
"""

from __future__ import annotations

import http.client
import os
import socket

import torch.distributed as dist


def download(port: int) -> bytes:
    """Ask a mirror that takes the connection and never answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/shard-2.tar")
    return connection.getresponse().read()  # culprit


def main() -> None:
    if os.environ["RANK"] == "2":
        mirror = socket.create_server(("127.0.0.1", 0))
        print(len(download(mirror.getsockname()[1])), "bytes")
    dist.init_process_group("gloo")
    dist.barrier()


main()
