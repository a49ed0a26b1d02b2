"""A few sums of a tensor: they tell how far it is from another one, also where ranks share it.

docs/internals/comm.md#values-of-other-numbers-of-ranks
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dap_mux.rank.comm.looks import can_look, unseen

PHASES = (0.754877666, 0.569840291, 0.819172513, 0.671043606)
"""Of the four projections: no one is a simple multiple of another, or of pi."""
BLOCK = 1 << 20
"""Elements of a tensor of half precision that are made 32-bit numbers at once: 4 MiB."""


def sums_of(tensor: Any) -> list[float]:
    """Return `[epsilon of its dtype, count, sum of squares, four projections]`, [] for none.

    Of a DTensor it is this rank's part, by where that is in the whole: parts add up.
    """
    with unseen() as torch:
        local, begin = _part(tensor)
        if local is None or not local.is_floating_point() or not can_look(local):
            return []
        total = torch.zeros(6, dtype=torch.float64, device=local.device)
        total[0] = local.numel()
        rows = local.detach() if local.dim() else local.detach().reshape(1)
        most = max(1, BLOCK * len(rows) // max(1, local.numel()))
        for at in range(0, len(rows), most):
            part = rows[at : at + most]
            part = part if part.dtype in (torch.float32, torch.float64) else part.float()
            total[1] += torch.linalg.vector_norm(part).double().square()
            total[2:] += _projected(torch, part, [begin[0] + at, *begin[1:]])
        return [float(torch.finfo(local.dtype).eps), *total.tolist()]


def _part(tensor: Any) -> tuple[Any, list[int]]:
    """Return what this rank has, and where that begins; None where it is only a part of sums."""
    if not hasattr(tensor, "to_local"):
        return tensor, [0] * max(1, tensor.dim())
    if any(placement.is_partial() for placement in tensor.placements):
        return None, []
    utils: Any = import_module("torch.distributed.tensor._utils")
    _, begin = utils.compute_local_shape_and_global_offset(
        tensor.shape, tensor.device_mesh, tensor.placements
    )
    return tensor.to_local(), [*begin] or [0]


def _projected(torch: Any, part: Any, begin: list[int]) -> Any:
    """Multiply by a wave along each dimension whose frequency grows: it has all frequencies."""
    there: dict[str, Any] = {"dtype": torch.float64, "device": part.device}
    for dim in reversed(range(part.dim())):
        at = torch.arange(begin[dim], begin[dim] + part.shape[dim], **there)
        phases, turns = torch.tensor(PHASES, **there), torch.arange(4, **there)
        waves = 2**0.5 * torch.cos(torch.outer(at * at, phases) + dim + turns)
        if dim == len(begin) - 1:
            part = (part @ waves.to(part.dtype)).double()
        else:
            part = (part * waves).sum(-2)
    return part
