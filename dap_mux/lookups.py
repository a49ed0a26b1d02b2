"""Lookups: names, attributes and subscripts, which an editor may evaluate where somebody points.

Calls are not among them. What a lookup itself runs (a property, a `__getitem__`) every debugger
runs at a hover, too.
"""

from __future__ import annotations

import ast
import warnings
from typing import Final

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
