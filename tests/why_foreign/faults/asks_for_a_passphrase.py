"""A program that a rank has started asks for a passphrase at a terminal that nobody looks at.

https://github.com/pypa/pipx/issues/704: fetching from git over ssh hangs for ever where the key has
a passphrase; the question is seen by nobody.
"""

from __future__ import annotations

import os
import pty
import subprocess

import torch
import torch.distributed as dist

ASK = "printf 'passphrase: ' >&2; read answer; echo fetched"


def fetch(asks: bool) -> int:
    _, terminal = pty.openpty()
    command = ["sh", "-c", ASK if asks else "echo fetched"]
    done = subprocess.run(  # culprit
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )  # culprit: end
    os.close(terminal)
    return len(done.stdout)


def main() -> None:
    dist.init_process_group("gloo")
    length = fetch(dist.get_rank() == 2)  # culprit: call
    dist.all_reduce(torch.tensor([length]))


main()
