"""A request for metadata has no timeout, and its server never answers.

https://github.com/facebookresearch/fairseq/pull/1869: training was frozen in requests.head
forever, as it was called without a timeout.
"""

from __future__ import annotations

import socket
from http.client import HTTPConnection

import torch
import torch.distributed as dist

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n"


class Connection(HTTPConnection):
    """To a server of which the other end stands here: it accepts, and may answer."""

    def connect(self) -> None:
        self.sock, self.server = socket.socketpair()
        if dist.get_rank() != 2:
            self.server.sendall(ANSWER)


def size_of(url: str) -> int:
    connection = Connection("models.example")
    connection.request("HEAD", url)
    return int(connection.getresponse().headers["Content-Length"])  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    size = size_of("/dictionary.txt")  # culprit: call
    dist.all_reduce(torch.tensor([size]))


main()
