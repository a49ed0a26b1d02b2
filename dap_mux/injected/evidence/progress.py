"""Whether a thread gets on: numbers among its variables, which a loop changes as it goes.

A thread that waits for others in a loop of C (MPI does) looks alike whether it gets on or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:  # a rank may have Python 3.8
    from types import FrameType

CO_OPTIMIZED = 1
MAX_FRAMES = 8


def progress(frames: list[FrameType], with_locals: bool) -> str:
    """Return a digest of the whole numbers in these frames, innermost last.

    `with_locals`: those of functions too. Up to Python 3.12 that keeps what the locals hold alive
    until the function returns, so it is for threads that show nothing else.
    """
    found: list[Any] = []
    for frame in frames[-MAX_FRAMES:]:
        code = frame.f_code
        if not code.co_flags & CO_OPTIMIZED:
            names, values = code.co_names, frame.f_globals
        elif with_locals:
            names, values = code.co_varnames, frame.f_locals
        else:
            continue
        numbers = (values.get(name) for name in names)
        found.append([number for number in numbers if type(number) is int])
    return f"{crc32(repr(found).encode()):08x}" if any(found) else ""
