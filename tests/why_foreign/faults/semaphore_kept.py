"""An exception has left a request without the release of its semaphore.

https://github.com/lm-sys/FastChat/pull/3405: an internal exception leaves the semaphore unreleased,
and a later request waits for it.
"""

from __future__ import annotations

import threading

import torch
import torch.distributed as dist

PLACES = threading.Semaphore(1)


def generate(prompt: str) -> int:
    PLACES.acquire()  # culprit
    tokens = prompt.split()
    length = len(tokens[-1])
    PLACES.release()
    return length


def answer(prompt: str) -> int:
    try:
        return generate(prompt)  # culprit: call
    except IndexError:
        return 0


def main() -> None:
    dist.init_process_group("gloo")
    first = "" if dist.get_rank() == 2 else "hello"
    lengths = [answer(prompt) for prompt in (first, "how are you")]  # culprit: answers
    dist.all_reduce(torch.tensor(lengths))


main()
