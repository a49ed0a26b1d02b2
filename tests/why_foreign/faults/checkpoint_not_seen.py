"""On one node the file system does not show the checkpoint yet, so that its rank starts afresh.

https://github.com/KempnerInstitute/KempnerForge/issues/49: each rank asked whether the state
exists; where it did not, the following broadcast_object_list was skipped, and the others deadlocked
in it.
"""

from __future__ import annotations

import torch.distributed as dist


def exists() -> bool:
    """Whether the checkpoint is there, as the cache of this node's file system has it."""
    return dist.get_rank() != 2


def load() -> dict[str, int]:
    state: list[dict[str, int]] = [{}]
    if exists():
        state = [{"step": 120}] if dist.get_rank() == 0 else state
        dist.broadcast_object_list(state, src=0)
    return state[0]


def main() -> None:
    dist.init_process_group("gloo")
    state = load()
    everywhere: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, state.get("step", 0))  # culprit


main()
