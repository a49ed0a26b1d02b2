"""Tells of a tensor whether it is finite, or a hash of its bytes.

A tensor on an NVIDIA GPU is reduced there. The check for finite values waits for the GPU before
the tensor is sent; a hash is queued on the stream, and waited for only where somebody reads it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable

CPU, GPUS = ("cpu",), ("cuda",)
"""The kinds of devices that are looked at."""
SMALL = 16384
"""Bytes of a tensor that is hashed as it is: as fast as two sums are to begin (measured)."""
BLOCK = 64
"""64-bit numbers that are added up at first: 512 bytes."""
SAMPLED = 16
"""The order of the numbers within a block counts in each block of so many."""
PART, PARTS = 4096, 8
"""Bytes of the pieces, of which a hash of one part in so many takes in each eighth."""
IN_PART = PART // (8 * BLOCK)


class Later:
    """A hash whose bytes come from a GPU: `str` waits for them. `arrive`: waits until they have.

    `prefix`: what its text begins with.
    """

    __slots__ = ("_arrive", "_bytes", "_found", "prefix")

    def __init__(self, coming: Any, arrive: Callable[[], object]) -> None:
        self._bytes, self._arrive = coming, arrive
        self._found = self.prefix = ""

    def __str__(self) -> str:
        if not self._found:
            self._arrive()
            self._found = blake2b(_bytes(self._bytes), digest_size=8).hexdigest()
            self._bytes = None
        return self.prefix + self._found


@contextmanager
def unseen() -> Iterator[Any]:
    """Give torch, and let no mode of the program's, nor autograd, see what is done with it.

    To switch modes off takes three times as long as to see that there are none.
    """
    torch: Any = sys.modules["torch"]
    before_dispatch: Any = sys.modules["torch._ops"]
    with torch.no_grad():
        if (
            torch._C._len_torch_dispatch_stack()  # noqa: SLF001
            or before_dispatch._len_torch_dispatch_stack_pre_dispatch()  # noqa: SLF001
        ):
            modes: Any = sys.modules["torch.utils._python_dispatch"]
            with modes._disable_current_modes():  # noqa: SLF001
                yield torch
        else:
            yield torch


def can_look(tensor: Any) -> bool:
    """Whether its elements can be read now: not while a GPU's work is captured for a graph."""
    torch: Any = sys.modules["torch"]
    kind = tensor.device.type
    if kind not in CPU + GPUS or tensor.layout is not torch.strided:
        return False
    if tensor.untyped_storage().nbytes() < tensor.nbytes:  # FSDP frees some
        return False
    return kind in CPU or not torch.cuda.is_current_stream_capturing()


def is_finite(tensor: Any) -> bool:
    """Whether no element is NaN or infinite; True of numbers that cannot be.

    A sum tells, at the speed of memory. One that is not finite may be an overflow of its own.
    """
    if not (tensor.is_floating_point() or tensor.is_complex()) or not can_look(tensor):
        return True
    with unseen() as torch:
        seen = tensor.detach()
        return bool(torch.isfinite(seen.sum()) or torch.isfinite(seen).all())


def fingerprint_of_part(tensor: Any, turn: int) -> str | Later:
    """Return the turn and a hash of one part in PARTS of a large tensor's bytes: `3~` and digits.

    Which part follows from the turn: after PARTS turns, each byte has counted.
    """
    if tensor.nbytes < PARTS * PART or not can_look(tensor):
        return fingerprint_later(tensor)
    with unseen() as torch:
        flat, turn = _aligned(_flat(torch, tensor)), turn % PARTS
        whole = flat.numel() // PART * PART
        pieces = flat[:whole].view(torch.int64).view(-1, IN_PART, BLOCK)[turn::PARTS]
        sums = [pieces.sum(2), pieces[:: SAMPLED // IN_PART, 0].sum(0)]  # no copy of the pieces
        rest = [flat[whole:]] if turn == 0 else []
        part = torch.cat([*(each.view(-1).view(torch.uint8) for each in sums), *rest])
        found = fingerprint_later(part)
        if isinstance(found, str):
            return f"{turn}~{found}"
        found.prefix = f"{turn}~"
        return found


def fingerprint(tensor: Any) -> str:
    """Return 16 hexadecimal digits that depend on its bytes and their order; "" where it cannot."""
    return str(fingerprint_later(tensor))


def fingerprint_later(tensor: Any) -> str | Later:
    """Return a hash, which waits for no GPU.

    A large tensor's bytes are added as 64-bit numbers in blocks, whose sums are hashed likewise:
    3.2 M floats that are in no cache take 0.45 ms, their plain sum, which would not tell their
    order, 0.4 ms, and sums by columns of all blocks as well 1.3 ms (measured).
    """
    if not can_look(tensor):
        return ""
    with unseen() as torch:
        flat = _flat(torch, tensor)
        parts = []
        if flat.numel() > SMALL:
            flat = _aligned(flat)
        while flat.numel() > SMALL:
            whole = flat.numel() // (8 * BLOCK) * 8 * BLOCK
            blocks = flat[:whole].view(torch.int64).view(-1, BLOCK)
            parts += [flat[whole:], blocks[::SAMPLED].sum(0).view(torch.uint8)]
            flat = blocks.sum(1).view(torch.uint8)
        parts.append(flat)
        if tensor.device.type in GPUS:
            return Later(*_on_their_way(torch, torch.cat(parts)))
        hashed = blake2b(digest_size=8)
        for each in parts:
            hashed.update(_bytes(each))
        return hashed.hexdigest()


def _on_their_way(torch: Any, there: Any) -> tuple[Any, Callable[[], object]]:
    """Copy bytes from a GPU to memory that it writes to itself; return them, and what waits."""
    with torch.cuda.device(there.device):
        here = torch.empty(there.numel(), dtype=torch.uint8, pin_memory=True)
        here.copy_(there, non_blocking=True)
        copied = torch.cuda.Event()
        copied.record()
    return here, copied.synchronize


def digest(value: Any) -> str:
    """Return digits that depend on any value: on the elements of tensors and arrays, or its repr.

    A dict, list or tuple is taken apart. "" where a tensor's bytes cannot be read.
    """
    if isinstance(value, sys.modules["torch"].Tensor):
        local = value.to_local() if hasattr(value, "to_local") else value
        return fingerprint(local)
    parts: list[str]
    if isinstance(value, dict):
        parts = [f"{key!r}: {digest(each)}" for key, each in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [digest(each) for each in value]
    elif hasattr(value, "tobytes") and hasattr(value, "shape"):  # an array; its repr is shortened
        text = f"{value.dtype} {value.shape} "
        return blake2b(text.encode() + value.tobytes(), digest_size=8).hexdigest()
    else:
        parts = [repr(value)]
    return blake2b("\n".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def memory_of(tensor: Any) -> memoryview:
    """Return where its elements lie. Raises ValueError where that is not this process's memory.

    The memory of a GPU, or a storage that FSDP has freed, must not be read.
    """
    if tensor.device.type not in CPU or not can_look(tensor):
        raise ValueError(f"a tensor on {tensor.device} is not in the memory of this process")
    with unseen() as torch:
        flat = _flat(torch, tensor)
    if not flat.numel():
        return memoryview(b"")
    array = (ctypes.c_ubyte * flat.numel()).from_address(flat.data_ptr())
    array.of = flat  # it lies there for as long as it is looked at
    return memoryview(array).cast("B")


def _flat(torch: Any, tensor: Any) -> Any:
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)
    return flat.view(torch.uint8) if flat.numel() else flat


def _aligned(flat: Any) -> Any:
    """Return bytes that can be looked at as 64-bit numbers."""
    return flat.clone() if flat.data_ptr() % 8 or flat.storage_offset() % 8 else flat


def _bytes(flat: Any) -> bytes:
    return ctypes.string_at(flat.data_ptr(), flat.numel()) if flat.numel() else b""
