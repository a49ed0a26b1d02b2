"""Addresses in the `repr` of objects, which differ in every process and say nothing of a value.

`<Foo object at 0x7f12a3>` in one rank and `<Foo object at 0x7f98c4>` in another count as equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# Only in what `repr` puts in angle brackets: a number elsewhere is a value. Names inside may have
# brackets of their own: <function train.<locals>.<lambda> at 0x7f12a3>. Bounded, because a rank may
# send any text, and each bracket in it is a place to start.
_ADDRESS: Final = re.compile(r"(<(?:[^<>'\"]|<\w+>){1,400}? at )0x[0-9a-fA-F]+")
MASKED: Final = "0x…"


def without_addresses(text: str) -> str:
    """Return a `repr` with its addresses masked; texts to compare, and to show for several."""
    return _ADDRESS.sub(rf"\g<1>{MASKED}", text) if " at 0x" in text else text


def common_text(texts: Iterable[str]) -> str:
    """Return the one text to show for texts that are equal but for addresses."""
    first, *others = dict.fromkeys(texts)
    return without_addresses(first) if others else first
