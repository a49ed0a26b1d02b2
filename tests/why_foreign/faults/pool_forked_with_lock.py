"""The workers of a pool inherit a lock that was held when they were forked.

https://github.com/huggingface/tokenizers/issues/187: a tokenizer that has been used before, with
its threads, hangs in encode_batch in a subprocess that is forked after that.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ADDRESS = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
TOKENIZER = threading.Lock()


def encode(text: str) -> int:
    with TOKENIZER:  # culprit: worker
        return len(text)


def hub() -> Connection:
    while True:
        with suppress(ConnectionRefusedError):
            return Client(ADDRESS)
        time.sleep(0.1)


def main() -> None:
    if RANK == 2:
        TOKENIZER.acquire()  # in use by a thread of its own
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(encode, ["all", "the", "text"])  # culprit
    if RANK == 0:
        with Listener(ADDRESS) as listener:
            print("encoded by", [listener.accept() for _ in range(1, SIZE)])
    else:
        hub().recv()


main()
