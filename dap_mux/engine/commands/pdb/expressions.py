"""What the words of pdb evaluate in a stopped rank to get pdb's answers: one expression each.

A frame object is found in the evaluate's own stack, where pydevd (a private part of it, looked
for with care) holds the one that the evaluate is for; so `u`, `d` and post-mortem stops are right.
"""

from __future__ import annotations

from typing import Final

_FRAME: Final = (
    "next((f.f_locals['frame'] for f, _ in __import__('traceback').walk_stack("
    "__import__('sys')._getframe()) if f.f_code.co_name == 'evaluate_expression'"
    " and hasattr(f.f_locals.get('frame'), 'f_code')))"
)
# pdb's own layout of numbered lines: an arrow at the current one.
_NUMBERED: Final = (
    "'\\n'.join(str(n).rjust(3) + (' ->' if n == here else '') + '\\t' + text.rstrip()"
    " for n, text in enumerate(lines, first))"
)

ARGUMENTS: Final = (
    "(lambda f, c: '\\n'.join(name + ' = ' + (repr(f.f_locals[name]) if name in f.f_locals"
    " else '*** undefined ***') for name in c.co_varnames[:c.co_argcount + c.co_kwonlyargcount"
    " + bool(c.co_flags & 4) + bool(c.co_flags & 8)]))"
    f"(*(lambda f: (f, f.f_code))({_FRAME}))"
)
LONG_LIST: Final = (
    "(lambda found, here: (lambda lines, first: "
    f"{_NUMBERED})(found[0], max(found[1], 1)))"
    f"(__import__('inspect').getsourcelines({_FRAME}), {{line}})"
)
# `first` and `last` are clipped to the file.
LIST: Final = (
    "(lambda found, first, last, here: (lambda lines: "
    f"{_NUMBERED})(found[first - 1:last]))"
    f"((lambda f: __import__('linecache').getlines(f.f_code.co_filename, f.f_globals))({_FRAME}),"
    " {first}, {last}, {line})"
)
LINE: Final = (
    "(lambda f: __import__('linecache').getline(f.f_code.co_filename, {line}, f.f_globals)"
    f".strip())({_FRAME})"
)
# The lines of the frame's function from `first` on, as numbers.
LINES_FROM: Final = (
    "' '.join(str(n) for n in sorted(set(n for _, n in __import__('dis').findlinestarts("
    f"{_FRAME}.f_code) if n is not None and n >= {{first}})))"
)

OF_VALUE: Final = {
    "pp": "__import__('pprint').pformat(({0}\n))",
    "source": (
        "(lambda found, here: (lambda lines, first: "
        f"{_NUMBERED})(found[0], max(found[1], 1)))"
        "(__import__('inspect').getsourcelines(({0}\n)), 0)"
    ),
    "whatis": (
        "(lambda v: 'Method ' + v.__name__ if hasattr(v, '__func__') else"
        " 'Function ' + v.__name__ if hasattr(v, '__code__') else"
        " 'Class ' + v.__module__ + '.' + v.__qualname__ if isinstance(v, type)"
        " else str(type(v)))(({0}\n))"
    ),
}


def of_value(word: str, expression: str) -> str:
    """Return what a rank evaluates for `pp`, `source` and `whatis`."""
    return OF_VALUE[word].replace("{0}", expression)
