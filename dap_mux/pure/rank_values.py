"""Values of several ranks side by side, and the lookups that may be evaluated for one."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

WARNING: Final = "⚠"
MORE: Final = "…"
DIGITS: Final = 6  # of a number beside others
SEPARATOR: Final = " | "
# Sign, zeros that say nothing, digits with a point among them or not, exponent.
_DECIMAL: Final = re.compile(r"([+-]?)(0?\.0*|0+)?([0-9]*\.?[0-9]*)(e[+-]?[0-9]+)?", re.IGNORECASE)
_LONGEST_NUMBER: Final = 400


class RankValue(NamedTuple):
    """The value of ranks that agree. `ranks` is a rank set, folded: `0-3,5`."""

    ranks: str
    value: str
    outlier: bool = False


def outliers_first(values: Iterable[RankValue]) -> list[RankValue]:
    """Return values in the order in which they are shown; otherwise the order stays."""
    return sorted(values, key=lambda one: not one.outlier)


def marked(value: RankValue) -> str:
    """Return `⚠ {2}` or `{0-1,3}`."""
    return f"{WARNING} {{{value.ranks}}}" if value.outlier else f"{{{value.ranks}}}"


# `⚠ {2}: 340268 | {0-1,3}: 0.090314…`: outliers first and marked, then the value that most ranks
# have. Beside others a number has six digits; where they leave it out, the rest is in the whole
# value (what unfolds, or the answer of one rank).
def side_by_side(values: Iterable[RankValue]) -> list[str]:
    """Return `⚠ {2}: 340268`, `{0-1,3}: 0.090314…`: each value in short, outliers first."""
    ordered = outliers_first(values)
    texts = in_short([one.value for one in ordered])
    return [f"{marked(one)}: {text}" for one, text in zip(ordered, texts, strict=True)]


def in_short(values: Sequence[str]) -> list[str]:
    """Shorten numbers to `DIGITS`. Those that would then look alike stay whole, one alone too."""
    if len(values) == 1:
        return list(values)
    short = [_six_digits(value) for value in values]
    alike = Counter(short)
    return [one if alike[one] == 1 else value for one, value in zip(short, values, strict=True)]


def _six_digits(text: str) -> str:
    """Cut the digits of a number that are after the point; `…` stands for them."""
    found = _DECIMAL.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
    if found is None:
        return text
    sign, zeros, digits, exponent = (part or "" for part in found.groups())
    if "." not in zeros + digits:
        return text  # an integer
    whole = len(digits.partition(".")[0]) if "." in digits else 0
    keep = max(DIGITS, whole) + ("." in digits)
    if not digits[keep:].strip("0"):
        return text
    return f"{sign}{zeros}{digits[:keep].rstrip('.')}{MORE}{exponent}"


# Lookups: names, attributes and subscripts, which an editor may evaluate where somebody points.
#
# Calls are not among them. What a lookup itself runs (a property, a `__getitem__`) every debugger
# runs at a hover, too.

_MAX_CHARS: Final = 1024
# Names, attributes and subscripts, with what may be between the brackets.
_PARTS: Final = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.Constant,
    ast.UnaryOp,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.unaryop,
    ast.expr_context,
)


def is_lookup(node: ast.AST) -> bool:
    """Whether an expression consists of names, attributes and subscripts alone."""
    return all(isinstance(each, _PARTS) for each in ast.walk(node))


def is_lookup_text(text: str) -> bool:
    """The same of a text; False for what is no expression, or too long for somebody to point at."""
    if len(text) > _MAX_CHARS:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the user's escapes, not ours
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return is_lookup(tree.body)
