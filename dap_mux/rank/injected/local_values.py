"""Simple values and norms of arrays among a frame's variables, in short, for many ranks at once."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterable

    Told = tuple[str, str | None]

WITHIN = 0.1  # s; what has not been looked at by then is left out
DEVICE_WITHIN = 0.03  # s for a device: the next step waits for this
MAX_ELEMENTS = 1 << 22  # of an array on the CPU: the norm of a larger one takes 10 ms and more
MAX_CHARS = 100
MAX_BITS = 256
PLAIN = (int, float, bool, type(None))
# A thread that outlives this, on another device or of jax, could abort the process at its end.
TENSORS = frozenset({"Tensor", "Parameter", "DTensor"})
DEVICES = frozenset({"cpu", "cuda"})

_kept: dict[str, Any] = {}


def local_values(sent: dict[str, Any], names: Iterable[str], scope: dict[str, Any]) -> str:
    """Return JSON by name: a text, and of an array its norm, a text for JSON has no nan.

    `sent`: the modules, by name. `scope`: the variables. Only values of exactly these types are
    looked at, so no code of the program's runs. A name without such a value is left out.
    """
    until = time.monotonic() + WITHIN
    found = {}
    for name in names:
        if time.monotonic() > until:
            break
        told = told_of(sent, scope[name]) if name in scope else None
        if told is not None:
            found[name] = told
    return json.dumps(found)


def told_of(sent: dict[str, Any], value: Any) -> Told | None:
    """Return the text and the norm of one value, None for a value of any other type."""
    kind = type(value)
    if kind is str:
        cut = len(value) > MAX_CHARS
        return (repr(value[:MAX_CHARS]) + (f" of {len(value)}" if cut else ""), None)
    if kind in PLAIN:
        long = kind is int and value.bit_length() > MAX_BITS
        return None if long else (repr(value), None)
    library = str(kind.__module__).partition(".")[0]
    ours = library == "numpy" or (library == "torch" and kind.__name__ in TENSORS)
    return summary_of(sent, value) if ours and library in sys.modules else None


def summary_of(sent: dict[str, Any], value: Any) -> Told | None:
    """Return the summary of an array that is small, or on a device that is not busy."""
    if not _kept:
        exec(sent["tensor_summary"], _kept)  # noqa: S102
        # This copy of the module is ours alone, and nobody has asked for these values.
        _kept.update(DEVICE_WAIT=DEVICE_WITHIN, STATISTICS_WITHIN=DEVICE_WITHIN)
    if getattr(getattr(value, "device", None), "type", "cpu") not in DEVICES:
        return None
    elements = 1
    for size in getattr(value, "shape", ()):
        elements *= int(size)
    if elements > MAX_ELEMENTS:
        return None
    seen = _kept["seen"](value)
    if seen is value or hasattr(seen, "pending"):
        return None
    norm = getattr(seen, "norm", None)
    return repr(seen)[: 2 * MAX_CHARS], None if norm is None else f"{norm:.9g}"
