"""A rank waits for data that its own loader does not bring."""

from __future__ import annotations

from dap_mux.insight.why.evidence import Sample, Thread
from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import (
    Verdict,
    has_not_reached,
    in_the_kernel,
    place,
    ranks,
    suspects,
)

NAME = "input-starved"
LOADERS = ("torch/utils/data/dataloader.py", "queue.py", "multiprocessing/queues.py")
TAKES = frozenset({"get", "_get_data", "_try_get_data", "_next_data"})


def find(picture: Picture) -> Verdict | None:
    """It counts if others wait for that rank."""
    starved = [one for one in picture.elsewhere if (one.steady or one.polls) and _takes(one)]
    if not starved or not picture.waiting:
        return None
    busy = (text for one in starved[:1] if one.samples for text in _loaders(one.samples[-1]))
    return Verdict(
        NAME,
        f"{ranks(starved)} {'waits' if len(starved) == 1 else 'wait'} for data at"
        f" {place(starved[0].place)}, which the loader does not bring",
        suspects(starved, picture),
        (*busy, *has_not_reached(starved, picture)),
        f"dap-mux stacks {starved[0].rank[1]} --threads all",
    )


def _takes(one: Doing) -> bool:
    return any(frame.path.endswith(LOADERS) and frame.function in TAKES for frame in one.stack)


def _loaders(sample: Sample) -> list[str]:
    return [
        f"its thread {thread.name} is {in_the_kernel(thread)}"
        for thread in sample.threads
        if not thread.main and in_the_kernel(thread) and _is_at_a_file(thread)
    ]


def _is_at_a_file(thread: Thread) -> bool:
    return bool(thread.file) and not thread.file.startswith("socket:")
