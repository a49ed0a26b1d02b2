"""Reads pickles of plain values, such as torch's flight-recorder dumps, and no others.

A pickle may name any function to be called, so those that name anything are refused before they are
loaded, as are those that make Python reserve more memory than they have bytes.
"""

from __future__ import annotations

import pickle
import pickletools
from typing import Any, Final

PLAIN: Final = frozenset({
    "APPEND", "APPENDS", "BINBYTES", "BINBYTES8", "BINFLOAT", "BINGET", "BININT", "BININT1",
    "BININT2", "BINPUT", "BINUNICODE", "BINUNICODE8", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE",
    "FRAME", "LONG1", "LONG_BINGET", "LONG_BINPUT", "MARK", "MEMOIZE", "NEWFALSE", "NEWTRUE",
    "NONE", "PROTO", "SETITEM", "SETITEMS", "SHORT_BINBYTES", "SHORT_BINUNICODE", "STOP", "TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3",
})  # fmt: skip
"""Names of opcodes that make lists, tuples, dicts, numbers and texts."""
PLACES: Final = frozenset({"BINPUT", "LONG_BINPUT"})
MAX_OPCODES: Final = 8_000_000
MAGIC: Final = b"\x80"


class NotPlain(ValueError):
    """Why something is no pickle, or not one of plain values."""


def plain_values(data: bytes) -> Any:
    """Return what is pickled. Raises NotPlain."""
    try:
        _check(data)
        return pickle.loads(data)  # noqa: S301  (nothing that names a function is left)
    except NotPlain:
        raise
    except Exception as error:  # noqa: BLE001  (broken ones raise nearly anything)
        raise NotPlain(f"a broken pickle ({type(error).__name__})") from None


def _check(data: bytes) -> None:
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if count > MAX_OPCODES:
            raise NotPlain(f"a pickle of more than {MAX_OPCODES} steps")
        if opcode.name not in PLAIN:
            raise NotPlain(f"a pickle of more than plain values ({opcode.name})")
        # The table of values is made as long as the highest place.
        if opcode.name in PLACES and argument is not None and argument > len(data):
            raise NotPlain("a pickle with places far beyond its length")
