"""A condition with an undefined name: debugpy silently treats it as false each time.

The names in a function are read from its source, other names of its module are asked for in the
ranks. If either is unavailable, nothing is reported.
"""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path
from typing import Final

from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations
from dap_mux.doctor.snapshot import Json, SessionSnapshot
from dap_mux.rank_sets import RankSetError, split_condition
from dap_mux.suggestions import closest

CAUSE: Final = "condition"
_VARIABLE: Final = re.compile(r"\$\w+")  # ours, replaced before a rank sees it
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_NAMING: Final = (*_SCOPES[:3], ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
# Names that no module of this file name has.
UNKNOWN: Final = (
    "(lambda names, file: [n for n in names if not any(n in getattr(m, '__dict__', {{}})"
    " for m in list(__import__('sys').modules.values()) if str(getattr(m, '__file__', None))"
    ".replace(chr(92), '/').rsplit('/', 1)[-1] == file)])({!r}, {!r})"
)


async def examine(observed: Observations) -> list[Finding]:
    """Check every breakpoint with a condition."""
    return [
        finding
        for snapshot in observed.snapshots
        for one in snapshot.breakpoints
        if one["condition"] and (finding := await _of_breakpoint(snapshot, one))
    ]


async def _of_breakpoint(snapshot: SessionSnapshot, one: Json) -> Finding | None:
    wanted = names_in(one["condition"])
    known = _known_at(one["path"], one["line"])
    open_ = sorted(wanted - known) if known is not None else []
    if not open_:
        return None
    file = str(one["path"]).replace("\\", "/").rpartition("/")[2]
    answers = await snapshot.ask(UNKNOWN.format(open_, file))
    lists = [names for names in answers.values() if isinstance(names, list)]
    if not lists or len(lists) < len(answers):
        return None
    unknown = [name for name in open_ if all(name in names for names in lists)]
    return _finding(one, unknown, known or frozenset()) if unknown else None


def _finding(one: Json, unknown: list[str], known: frozenset[str]) -> Finding:
    where = f"{one['path']}:{one['line']}"
    named = ", ".join(map(repr, unknown))
    like = [close for name in unknown if (close := closest(name, known))]
    meant = f"; did you mean {', '.join(like)}?" if like else ""
    return Finding(
        CAUSE,
        f"the condition of {where} uses a name that does not exist: it never stops",
        (
            (
                f"condition {one['condition']!r}: in no rank does the function at line "
                f"{one['line']} or its module define {named}"
            ),
        ),
        (f"correct the name{meant} (debugpy silently treats a NameError as false)",),
        where=where,
    )


def names_in(condition: str) -> frozenset[str]:
    """Return the free names of a condition; none if it cannot be parsed."""
    try:
        prefix = split_condition(condition)
        rest = "" if prefix.differ else prefix.rest  # with a name that is not known, that one stops
        tree = ast.parse(_VARIABLE.sub("0", rest).strip(), mode="eval")
    except (RankSetError, SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return frozenset({node.id for node in names} - own - set(dir(builtins)))


def _known_at(path: str, line: int) -> frozenset[str] | None:
    """Return the names visible at a line; None if there is no such source."""
    try:
        return names_at(Path(path).read_text("utf-8"), line)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def names_at(text: str, line: int) -> frozenset[str]:
    """Return the names of the module, and of every function around a line."""
    module = ast.parse(text)
    around = [
        node
        for node in ast.walk(module)
        if isinstance(node, _SCOPES) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return frozenset(name for scope in (module, *around) for name in _bound_in(scope))


def _bound_in(scope: ast.AST) -> set[str]:
    """Return all names bound in it, nested functions included: too many cause no false alarm."""
    found: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, _NAMING) and node.name:
            found.add(node.name)
    return found
