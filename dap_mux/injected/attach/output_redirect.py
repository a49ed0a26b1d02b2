"""Keep the objects that debugpy puts in the place of `sys.stdout` and `sys.stderr`.

While it evaluates an expression of a debug console debugpy replaces both streams, and afterwards it
drops the replacement. CPython's `print` holds no reference to the stream that it writes to, so
where another thread prints at that moment the process ends with a segmentation fault (measured:
CPython 3.11, one rank in thirty minutes of a console's expressions). Here a replacement is made
once for each stream, and used again.
"""

from __future__ import annotations

from collections import deque
from importlib import import_module
from typing import Any

MAX_KEPT = 32
"""A program may replace its streams again and again: these many are kept, the newest."""


def keep_redirectors() -> None:
    """From now on no replacement is freed while the program may still write to it."""
    pydevd_io: Any = import_module("_pydevd_bundle.pydevd_io")
    make = pydevd_io.IORedirector
    if not isinstance(make, type):
        return  # it is done
    kept: deque[tuple[Any, str, Any]] = deque(maxlen=MAX_KEPT)

    def make_or_use_again(original: Any, new: Any, wrap_buffer: bool = False) -> Any:
        kind = f"{type(new).__name__} {getattr(new, '_out_ctx', '')} {wrap_buffer}"
        for stream, its_kind, redirector in kept:
            if stream is original and its_kind == kind:
                return redirector
        redirector = make(original, new, wrap_buffer=wrap_buffer)
        kept.append((original, kind, redirector))
        return redirector

    pydevd_io.IORedirector = make_or_use_again
