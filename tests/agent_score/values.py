"""The rules of the scripted agent for wrong values: which ranks, and where the value was made."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from tests.agent_score.program import COMMUNICATION, RANK, Program, called, head, used

OPAQUE: Final = " object at "
STALE: Final = r"cache|old|prev|last|stale|saved|checkpoint|copy|snapshot|newest|settings|version"
MOST_EQUAL: Final = 3
NEAR: Final = 1e-3


def odd_ranks(watch: Mapping[str, Any]) -> str:
    """Return the ranks whose value of a watched expression is unlike the others', "" for none."""
    if watch.get("outliers") and not _all_near(watch):
        return str(watch["outliers"])
    errors, values = watch.get("errors") or [], watch.get("values") or []
    if errors and values:
        return str(errors[0]["ranks"])
    strange = [one for one in values if re.search(r"\b(nan|inf)\b(?! 0)", str(one["value"]))]
    if strange and len(strange) < len(values):
        return ",".join(str(one["ranks"]) for one in strange)
    return ""


def _all_near(watch: Mapping[str, Any]) -> bool:
    """Whether values are numbers that nearly agree, and no two are the same."""
    try:
        numbers = [float(one["value"]) for one in watch["values"]]
    except ValueError:
        return False
    alone = all(str(one["ranks"]).isdecimal() for one in watch["values"])
    return alone and max(numbers) - min(numbers) < NEAR * max(map(abs, numbers))


def repeated_ranks(watch: Mapping[str, Any]) -> str:
    """Return the ranks that have the value of a lower one, where most values differ."""
    sets = [str(one["ranks"]).split(",") for one in watch.get("values") or []]
    if len(sets) < MOST_EQUAL or any("-" in each for ranks in sets for each in ranks):
        return ""
    return ",".join(sorted((each for ranks in sets for each in ranks[1:]), key=int))


def all_ranks(watch: Mapping[str, Any]) -> str:
    """Return all ranks where no two have the same value."""
    found = [str(one["ranks"]) for one in watch.get("values") or []]
    alone = len(found) > MOST_EQUAL and all(each.isdecimal() for each in found)
    return ",".join(found) if alone else ""


def cause_of_all(watch: Mapping[str, Any]) -> str:
    """Return why no two ranks have the same value: perhaps the same things in another order."""
    texts = {"".join(sorted(str(one["value"]))) for one in watch["values"]}
    return "mismatched collective" if len(texts) == 1 else "missed sync"


def is_strange(watch: Mapping[str, Any]) -> bool:
    """Whether a value is not a number, in any rank."""
    return any(re.search(r"\bnan\b(?! 0)", str(one["value"])) for one in watch.get("values") or [])


def names_in(expression: str) -> list[str]:
    """Return the names of an expression."""
    try:
        tree = ast.parse(expression)
    except SyntaxError:
        return []
    return [each.id for each in ast.walk(tree) if isinstance(each, ast.Name)]


def names_for(expression: str, line: int, program: Program, most: int) -> list[str]:
    """Return what to look at: an expression, and the names that its value depends on."""
    scope = program.scope(line)
    found = list(dict.fromkeys([expression, *names_in(expression)]))
    for name in found:
        for node in program.assignments(name, line):
            if program.scope(node.lineno) in (scope, program.tree):
                new = [one for one in used(node) if one not in found and one in program.variables]
                found += new[: most - len(found)]
    return found


def root_of(odd: Mapping[str, str], line: int, program: Program) -> tuple[str, ast.stmt | None]:
    """Return the odd name of whose sources none is odd, and where it gets its value."""
    found: tuple[str, ast.stmt | None] = (next(iter(odd)), None)
    for name in odd:
        nodes = [*chain.from_iterable(program.assignments(one, line) for one in names_in(name))]
        own = [node for node in nodes if not {*used(node)} & ({*odd} - {name})]
        if own:
            chosen = next((node for node in own if RANK.search(head(node))), own[0])
            found = (name, chosen)
    return found


def made_by_rank(
    node: ast.stmt, values: Mapping[str, Mapping[str, Any]], program: Program
) -> ast.stmt | None:
    """Return where a statement's source comes from that shows no value, but is made by rank.

    What it does in a function of the program can be followed there.
    """
    calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    own = {
        ast.unparse(one.value)
        for one in calls
        if isinstance(one, ast.Attribute) and one.attr in program.functions
    }
    for name in [each for each in used(node) if each not in own]:
        texts = [str(one["value"]) for one in values.get(name, {}).get("values") or []]
        for made in program.assignments(name, node.lineno):
            if len(texts) == 1 and OPAQUE in texts[0] and RANK.search(head(made)):
                return made
    return None


def entered(node: ast.stmt | None, program: Program) -> str:
    """Return the function of the program that gives a statement its value, "" for none."""
    names = called(node) if node is not None else []
    return next((name for name in names if name in program.functions), "")


def cause_of_value(node: ast.stmt | None, program: Program, *, nan: bool) -> str:
    """Return why a value is wrong, by the statement that made it."""
    if nan:
        return "nan"
    if node is None:
        return "wrong data"
    blocks = [block for block, _ in program.branches(node.lineno)]
    text = f"{head(node)} {' '.join(called(node))}"
    if any(isinstance(block, ast.ExceptHandler) for block in blocks):
        return "swallowed exception"
    if COMMUNICATION.search(text):
        return "missed sync"
    if re.search(STALE, text):
        return "stale value"
    return "wrong data"
