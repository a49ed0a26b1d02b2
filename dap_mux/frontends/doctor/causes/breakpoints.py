"""Breakpoints that do not stop, or cost much: conditions, library code, compiled code."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path
from typing import Final

from dap_mux.frontends.doctor.observations import Finding, Json, Observations, SessionSnapshot
from dap_mux.pure.printable import closest
from dap_mux.pure.rank_sets import RankSetError, split_condition
from dap_mux.pure.remote import COMPILED, compiled
from dap_mux.rank.injected import source_of

# A condition with an undefined name: debugpy silently treats it as false each time. The names in a
# function are read from its source, other names of its module are asked for in the ranks. If either
# is unavailable, nothing is reported.

_VARIABLE: Final = re.compile(r"\$\w+")  # ours, replaced before a rank sees it
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_NAMING: Final = (*_SCOPES[:3], ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
# Names that no module of this file name has.
UNKNOWN: Final = (
    "(lambda names, file: [n for n in names if not any(n in getattr(m, '__dict__', {{}})"
    " for m in list(__import__('sys').modules.values()) if str(getattr(m, '__file__', None))"
    ".replace(chr(92), '/').rsplit('/', 1)[-1] == file)])({!r}, {!r})"
)


async def examine_condition(observed: Observations) -> list[Finding]:
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
    return _condition_finding(one, unknown, known or frozenset()) if unknown else None


def _condition_finding(one: Json, unknown: list[str], known: frozenset[str]) -> Finding:
    where = f"{one['path']}:{one['line']}"
    named = ", ".join(map(repr, unknown))
    like = [close for name in unknown if (close := closest(name, known))]
    meant = f"; did you mean {', '.join(like)}?" if like else ""
    return Finding(
        "condition",
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


# A condition on a line that runs so often that evaluating it slows the rank down.

EVALUATION_COST_S: Final = 5e-6  # of one evaluation, with its overhead (make bench)
COST_THRESHOLD: Final = 0.1  # share of the rank's time
# The expensive conditions, as ranks measure them (dap_mux/rank/injected/attach/conditions.py).
RATE_EXPRESSION: Final = (
    "[(line, b.condition.partition('  # dap-mux waits ')[0], round(cost.rate))"
    " for db in [__import__('pydevd').get_global_debugger()]"
    " for path, lines in db.breakpoints.items() for line, b in lines.items()"
    " for cost in [getattr(b, 'dap_mux_cost', None)]"
    f" if cost is not None and cost.rate * {EVALUATION_COST_S} > {COST_THRESHOLD}]"
)


async def examine_condition_cost(observed: Observations) -> list[Finding]:
    """Check every breakpoint with a condition, in the ranks that have it."""
    found: list[Finding] = []
    for snapshot in observed.snapshots:
        if any(one["condition"] for one in snapshot.breakpoints):
            for ranks, dear in (await snapshot.ask(RATE_EXPRESSION)).items():
                if isinstance(dear, list):
                    found += [_condition_cost_finding(snapshot, ranks, *one) for one in dear]
    return found


def _condition_cost_finding(
    snapshot: SessionSnapshot, ranks: str, line: int, condition: str, rate: int
) -> Finding:
    paths = {one["path"] for one in snapshot.breakpoints if one["line"] == line}
    where = f"{paths.pop() if len(paths) == 1 else 'line'}:{line}"
    share = min(rate * EVALUATION_COST_S, 0.99)
    return Finding(
        "condition-cost",
        f"the condition of {where} slows the program down: its line runs very often",
        (
            (
                f"{condition!r} is evaluated {rate:,} times a second, at about "
                f"{EVALUATION_COST_S * 1e6:g} µs: {share:.0%} of the time"
            ),
        ),
        (
            (
                "put the test into the program, where it costs almost nothing "
                f"(`if {condition}: breakpoint()`), or set the breakpoint on another line"
            ),
        ),
        ranks=ranks,
        where=where,
    )


# A breakpoint in library code, which debugpy skips because of `justMyCode`.

SIGN: Final = "justMyCode"  # in debugpy's message about a breakpoint that it ignores
# Private interface of pydevd: without it nothing is reported.
FILTERED: Final = (
    "(lambda d, p: bool(d.get_use_libraries_filter()"
    " and not d.in_project_roots_filename_uncached(p)))"
    "(__import__('pydevd').get_global_debugger(), {!r})"
)


async def examine_just_my_code(observed: Observations) -> list[Finding]:
    """Check breakpoints, and files that the user asked about."""
    findings = []
    for snapshot in observed.snapshots:
        told = {
            f"{one['path']}:{one['line']}": str(one["message"]).partition("\n")[0]
            for one in snapshot.breakpoints
            if SIGN in str(one["message"])
        }
        findings += [_of_library(where, f"{where}: {seen}") for where, seen in told.items()]
        findings += [one for one in await _of_files(snapshot, observed) if one.where not in told]
    return findings


async def _of_files(snapshot: SessionSnapshot, observed: Observations) -> list[Finding]:
    findings = []
    for place in observed.places:
        answers = await snapshot.ask(FILTERED.format(place.path))
        ranks = [ranks for ranks, filtered in answers.items() if filtered is True]
        if ranks:
            seen = f"rank {','.join(ranks)}: {place.path} counts as library code"
            findings.append(_of_library(str(place), seen))
    return findings


def _of_library(where: str, seen: str) -> Finding:
    return Finding(
        "just-my-code",
        f"{where} is library code, which justMyCode excludes",
        (seen,),
        ("put this into the launch configuration and start debugging again:",),
        paste='"justMyCode": false',
        where=where,
    )


# A breakpoint in code that torch has compiled, in which no line stops.


async def examine_compiled(observed: Observations) -> list[Finding]:
    """Check breakpoints, and lines that the user asked about."""
    findings = []
    for snapshot in observed.snapshots:
        told = {
            f"{one['path']}:{one['line']}": (str(one["message"]),)
            for one in snapshot.breakpoints
            if COMPILED in str(one["message"])
        }
        places = [(str(one["path"]), one["line"]) for one in snapshot.breakpoints if one["path"]]
        places += [(place.path, place.line) for place in observed.places]
        asked = await _seen(snapshot, sorted({(path, line) for path, line in places if line}))
        findings += [_compiled_finding(where, seen) for where, seen in {**asked, **told}.items()]
    return findings


async def _seen(
    snapshot: SessionSnapshot, places: list[tuple[str, int]]
) -> dict[str, tuple[str, ...]]:
    """Ask ranks about these lines, if they know the files by the same paths."""
    seen: dict[str, tuple[str, ...]] = {}
    answers = await snapshot.ask(compiled(source_of("torch_state"), places)) if places else {}
    for ranks, answer in answers.items():
        for one in answer if isinstance(answer, list) else []:
            if isinstance(one, list) and len(one) == 4:  # a path, a line and two functions
                path, line, function, root = one
                into = f", inlined into {root}" if root else ""
                text = f"rank {ranks}: torch has compiled {function}{into}"
                seen[f"{path}:{line}"] = (*seen.get(f"{path}:{line}", ()), text)
    return seen


def _compiled_finding(where: str, seen: tuple[str, ...]) -> Finding:
    return Finding(
        "compiled",
        f"{where} is in code that torch.compile has compiled: breakpoints never stop there",
        seen,
        (
            "start the job with TORCH_COMPILE_DISABLE=1, so that everything runs as plain Python",
            "or put @torch.compiler.disable before that function",
        ),
        where=where,
    )
