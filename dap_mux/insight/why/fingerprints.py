"""The collectives that torch names where ranks call different ones.

With TORCH_DISTRIBUTED_DEBUG=DETAIL each rank's log has its own and that of another rank
(`ProcessGroupWrapper.cpp`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dap_mux.insight.why.evidence import Collective

MAX_FOUND: Final = 10_000
MAX_TENSORS: Final = 64
_RUNNING: Final = re.compile(
    r"(but )?Rank (\d{1,6}) is running collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(\d{1,12})(?:, )?)?OpType=(\w{1,40})"
    r"(?:, TensorShape=([\[\]\d, ]{0,2000}), TensorDtypes=([\w, ]{0,500}), Tensor)?"
)
_SHAPE: Final = re.compile(r"\[([\d, ]*)\]")
_NUMBER: Final = re.compile(r"\d{1,12}")
KINDS: Final = {
    "ALLREDUCE": "all_reduce",
    "ALLREDUCE_COALESCED": "all_reduce_coalesced",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all_single",
    "REDUCE_SCATTER": "reduce_scatter",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
}


class Running(NamedTuple):
    """The last collective of each rank: as its own log has it, and as that of another rank has.

    What another one says of a call without tensors, such as `barrier`, is wrong in torch 2.13.
    """

    own: dict[int, Collective]
    by_others: dict[int, Collective]

    def add(self, other: Running) -> None:
        """Take what another log has."""
        self.own.update(other.own)
        self.by_others.update(other.by_others)

    def of(self, rank: int) -> Collective | None:
        """Return what a rank is in."""
        return self.own.get(rank) or self.by_others.get(rank)


def collectives_in(text: str) -> Running:
    """Return the last collective of each rank that a log names."""
    found = Running({}, {})
    for at, said in enumerate(_RUNNING.finditer(text)):
        if at >= MAX_FOUND:
            break
        but, rank, number, kind, shapes, dtypes = said.groups()
        (found.by_others if but else found.own)[int(rank)] = Collective(
            group="",
            number=int(number) if number else -1,
            kind=KINDS.get(kind, kind.lower()),
            sizes=_shapes(shapes or ""),
            dtypes=[each for each in re.split(r"[ ,]+", dtypes or "") if each][:MAX_TENSORS],
            state="started",
            age=None,
        )
    return found


def _shapes(text: str) -> list[list[int]]:
    found = _SHAPE.findall(text)[:MAX_TENSORS]
    return [[int(number) for number in _NUMBER.findall(shape)] for shape in found]
