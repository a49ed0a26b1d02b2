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
TAKEN: Final = {"APPEND": 1, "SETITEM": 2, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
"""How many values these take from the stack."""
MAX_OPCODES: Final = 8_000_000
MAX_HASHED: Final = 20_000_000  # values of all tuples and keys, each as often as it is there
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
    sizes = _Sizes()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if count > MAX_OPCODES:
            raise NotPlain(f"a pickle of more than {MAX_OPCODES} steps")
        if opcode.name not in PLAIN:
            raise NotPlain(f"a pickle of more than plain values ({opcode.name})")
        # The table of values is made as long as the highest place.
        if opcode.name in PLACES and argument is not None and argument > len(data):
            raise NotPlain("a pickle with places far beyond its length")
        sizes.step(opcode.name, argument)


class _Sizes:
    """How many values the tuples on pickle's stack have, each counted as often as it is there.

    A tuple of two of the same tuple, and so on: 60 steps, and the hash of it as a key of a dict
    goes through all 2 ** 60.
    """

    def __init__(self) -> None:
        self._stack: list[int] = []
        self._marks: list[int] = []
        self._memo: dict[int, int] = {}
        self._total = 0

    def step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name == "MARK":
            self._marks.append(len(stack))
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in PLACES:
            self._memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name in ("APPENDS", "SETITEMS", "TUPLE"):
            self._take(self._marks.pop(), pushes=name == "TUPLE")
        elif name in TAKEN:
            self._take(len(stack) - TAKEN[name], pushes=name.startswith("TUPLE"))
        elif name not in ("FRAME", "PROTO", "STOP"):
            stack.append(1)

    def _take(self, start: int, *, pushes: bool) -> None:
        size = 1 + sum(self._stack[start:])
        self._total += size
        if self._total > MAX_HASHED:
            raise NotPlain(f"tuples of more than {MAX_HASHED} values")
        del self._stack[start:]
        if pushes:
            self._stack.append(size)
