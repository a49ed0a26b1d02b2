"""A batch function returns fewer outputs than it was given inputs, and one future gets none.

https://github.com/stanfordnlp/dspy/issues/10313: outputs are zipped with the futures of their
callers, and who waits for one of those left over waits forever.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future

import torch
import torch.distributed as dist

REQUESTS: queue.Queue[tuple[str, Future[float]]] = queue.Queue()


def score(texts: list[str]) -> list[float]:
    return [float(len(text)) for text in texts if text]  # the empty is left out


def serve() -> None:
    while True:
        text, future = REQUESTS.get()
        for output, waiting in zip(score([text]), [future], strict=False):
            waiting.set_result(output)


def reward(text: str) -> float:
    future: Future[float] = Future()
    REQUESTS.put((text, future))
    return future.result()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    threading.Thread(target=serve, daemon=True).start()
    for step in range(3):
        text = "" if dist.get_rank() == 2 and step == 1 else "a completion"
        dist.all_reduce(torch.tensor([reward(text)]))  # culprit: call


main()
