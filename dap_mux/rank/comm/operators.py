"""The operators of torch's `c10d` library: what users call them, and which arguments are what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

NONE = -1


class Operator(NamedTuple):
    """One operator. `input`, `output`: places of its arguments, NONE for none.

    `root`: the place of the number in the group of the only rank whose input counts. `peer`: that
    of the other rank's number. `even`: whether its tensors are the user's, and alike in all ranks.
    """

    kind: str
    input: int = 0
    output: int = 0
    root: int = NONE
    peer: int = NONE
    even: bool = True

    @property
    def is_p2p(self) -> bool:
        """Whether it is between two ranks."""
        return self.kind in ("send", "recv")


OPERATORS = {
    "_allgather_base_": Operator("all_gather_into_tensor", input=1),
    "_reduce_scatter_base_": Operator("reduce_scatter_tensor", input=1),
    "allgather_": Operator("all_gather", input=1),
    "allgather_coalesced_": Operator("all_gather_coalesced", input=1),
    "allgather_into_tensor_coalesced_": Operator("all_gather_into_tensor_coalesced", input=1),
    "allreduce_": Operator("all_reduce"),
    "allreduce_coalesced_": Operator("all_reduce_coalesced"),
    "alltoall_": Operator("all_to_all", input=1, even=False),
    "alltoall_base_": Operator("all_to_all_single", input=1, even=False),
    "barrier": Operator("barrier", NONE, NONE, even=False),
    "broadcast_": Operator("broadcast", root=2),
    "gather_": Operator("gather", input=1),
    "monitored_barrier_": Operator("monitored_barrier", NONE, NONE, even=False),
    "recv_": Operator("recv", input=NONE, peer=2),
    "recv_any_source_": Operator("recv", input=NONE),
    "reduce_": Operator("reduce"),
    "reduce_scatter_": Operator("reduce_scatter", input=1),
    "reduce_scatter_tensor_coalesced_": Operator("reduce_scatter_tensor_coalesced", input=1),
    "scatter_": Operator("scatter", input=1),
    "send": Operator("send", output=NONE, peer=2),
}


def tensors_in(values: Any) -> Iterator[Any]:
    """Yield the tensors of an argument, which may be one, or lists of lists of them."""
    if isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors_in(value)
    elif hasattr(values, "data_ptr"):
        yield values
