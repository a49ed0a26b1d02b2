"""The rules of the scripted agent: from stacks, values and a program's text to a line and a cause.

They are the same for all bugs, and the same whether stacks come from tools or from py-spy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.agent_score.program import COMMUNICATION, ENDS, RANK, Program, called, head, used

FRAME: Final = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+) (?P<function>.+)")
CAUSE_OF_VERDICT: Final = {
    "process-stopped": "other wait",
    "exception-held": "swallowed exception",
    "gil-held": "lock",
    "lock-cycle": "lock",
    "mismatched-collective": "mismatched collective",
    "p2p-cycle": "deadlock of messages",
    "blocked-io": "other wait",
    "slow-rank": "slow rank",
}
BY_TEXT: Final = (
    ("lock", r"lock|acquire|semaphore|mutex|futex"),
    (
        "dead worker",
        r"queue|worker|pool|\.get\(|\.join\(|waitpid|future|result\(|has ended, and nob",
    ),
)
BY_EXCEPTION: Final = (
    ("nan", r"\bnan\b|finite|\binf\b"),
    ("dead worker", r"worker|BrokenProcessPool|killed|signal|SIGKILL"),
    ("mismatched collective", r"mismatch|collective|shape|size"),
)
PEER_IS_GONE: Final = re.compile(
    r"Connection|BrokenPipe|EOFError|reset by peer|closed by", re.IGNORECASE
)


class Frame(NamedTuple):
    """A frame of the program's own code."""

    file: str
    line: int
    function: str


class At(NamedTuple):
    """Ranks at one place; `stack`: their own frames, outermost first; `waits`: for what."""

    ranks: str
    stack: tuple[Frame, ...]
    waits: str = ""


class Looked(NamedTuple):
    """What is known of a job that does not get on; `said`: in words."""

    suspects: Sequence[At]
    others: Sequence[At]
    verdict: str = ""
    said: str = ""


class Named(NamedTuple):
    """What the agent names."""

    ranks: str
    file: str
    line: int
    cause: str


def frames(texts: Iterable[str], own: Iterable[str]) -> tuple[Frame, ...]:
    """Return the frames in files of the program, outermost first; `texts` are innermost first."""
    files = {path.rpartition("/")[2] for path in own}
    found = [match for text in texts if (match := FRAME.fullmatch(text)) and match["file"] in files]
    return tuple(Frame(one["file"], int(one["line"]), one["function"]) for one in reversed(found))


def of_slow(looked: Looked, program: Program) -> tuple[int, str]:
    """Return line and cause of a job that is slow: where the rank is that the others wait for."""
    line, cause = of_hang(looked, program)
    return line, cause if cause in ("lock", "deadlock of messages") else "slow rank"


def of_hang(looked: Looked, program: Program) -> tuple[int, str]:
    """Return line and cause of a job that hangs."""
    suspect = looked.suspects[0]
    other = max(looked.others, key=lambda one: len(one.stack), default=None)
    if not suspect.stack:
        return _of_gone(looked, other, program)
    if other is not None and other.stack and _communicates(suspect, program):
        return _of_diverging(suspect, other, looked, program)
    line = suspect.stack[-1].line
    return line, _cause_of_wait(looked, line, program)


def _communicates(at: At, program: Program) -> bool:
    inner = at.stack[-1]
    words = f"{at.waits} {inner.function} {program.text(inner.line)}"
    return bool(at.waits) or bool(COMMUNICATION.search(words))


def _cause_of_wait(looked: Looked, line: int, program: Program) -> str:
    if any(isinstance(block, ast.ExceptHandler) for block, _ in program.branches(line)):
        return "swallowed exception"
    if looked.verdict in CAUSE_OF_VERDICT:
        return CAUSE_OF_VERDICT[looked.verdict]
    words = f"{program.text(line)} {looked.said}".lower()
    return next((cause for cause, text in BY_TEXT if re.search(text, words)), "other wait")


def _of_gone(looked: Looked, other: At | None, program: Program) -> tuple[int, str]:
    """Of ranks that are gone, by what they have left, else by the way out before the others."""
    said = looked.said
    cause = "dead worker" if re.search(r"killed|SIG[A-Z]|memory", said) else "early exit"
    if cause != "dead worker" and re.search(r"exit code [1-9]|exception|Error\b", said):
        cause = "exception"
    if known := re.search(
        r"[\w./-]+\.py[:\"](?:, line )?(\d+)", looked.said.partition("left: ")[2]
    ):
        return int(known[1]), cause
    at = other.stack[-1].line if other and other.stack else len(program.lines)
    outer = other.stack[0].line if other and other.stack else 1
    ways = [*program.exits(1, len(program.lines))]
    by_rank = [each for each in ways if program.is_guarded(each)]
    killing = [each for each in ways if ENDS.search(head(each))]
    for choice in (by_rank, killing, ways):
        if choice:
            return min(choice, key=lambda each: abs(each.lineno - outer)).lineno, cause
    loop = next((block for block, _ in program.branches(outer) if isinstance(block, ast.For)), None)
    if loop is not None:
        return program.rank_dependent(loop.lineno) or loop.lineno, "uneven batches"
    return at, cause


def _of_diverging(suspect: At, other: At, looked: Looked, program: Program) -> tuple[int, str]:
    """Where a rank went another way than the rest: what encloses only one of the two places."""
    usual = CAUSE_OF_VERDICT.get(looked.verdict, "mismatched collective")
    pairs = zip(suspect.stack, other.stack, strict=False)
    here, there = next(
        ((mine, its) for mine, its in pairs if mine != its), (suspect.stack[-1], other.stack[-1])
    )
    if here == there:
        return program.rank_dependent(here.line) or here.line, usual
    if here.function != there.function:
        return here.line, usual
    mine, its = program.branches(here.line), program.branches(there.line)
    for block, part in mine:
        if (block, part) not in its and isinstance(block, ast.ExceptHandler):
            return block.lineno, "swallowed exception"
    for block, part in its:
        if (block, part) not in mine:
            return _of_missed(block, here.line, program, usual)
    return here.line, usual


def _of_missed(block: ast.AST, here: int, program: Program, usual: str) -> tuple[int, str]:
    """Of a rank that is not in a block in which all the others are."""
    if isinstance(block, ast.Try):
        handler = block.handlers[0] if block.handlers else block
        return handler.lineno, "swallowed exception"
    if isinstance(block, ast.For | ast.While):
        leaves = [
            each
            for each in program.exits(block.lineno, block.end_lineno or block.lineno)
            if isinstance(each, ast.Break | ast.Return)
        ]
        if leaves:
            return leaves[0].lineno, "early exit"
        return program.rank_dependent(block.lineno) or block.lineno, "uneven batches"
    return getattr(block, "lineno", here), usual


# Wrong values


def odd_ranks(watch: Mapping[str, Any]) -> str:
    """Return the ranks whose value of a watched expression is unlike the others', "" for none."""
    if watch.get("outliers"):
        return str(watch["outliers"])
    errors, values = watch.get("errors") or [], watch.get("values") or []
    if errors and values:
        return str(errors[0]["ranks"])
    strange = [one for one in values if re.search(r"\b(nan|inf)\b", str(one["value"]))]
    if strange and len(strange) < len(values):
        return ",".join(str(one["ranks"]) for one in strange)
    return ""


def is_strange(watch: Mapping[str, Any]) -> bool:
    """Whether a value is not a number, in any rank."""
    return any(re.search(r"\bnan\b", str(one["value"])) for one in watch.get("values") or [])


def names_for(expression: str, line: int, program: Program, most: int) -> list[str]:
    """Return what to look at: an expression, and the names that its value depends on."""
    try:
        start = [each.id for each in ast.walk(ast.parse(expression)) if isinstance(each, ast.Name)]
    except SyntaxError:
        start = []
    scope, found = program.scope(line), list(dict.fromkeys([expression, *start]))
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
        nodes = program.assignments(name, line)
        own = [node for node in nodes if not {*used(node)} & ({*odd} - {name})]
        if own:
            chosen = next((node for node in own if RANK.search(head(node))), own[0])
            found = (name, chosen)
    return found


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
    if re.search(r"cache|old|prev|last|stale|saved|checkpoint|copy|snapshot", text):
        return "stale value"
    return "wrong data"


def cause_of_exception(text: str) -> str:
    """Return the kind of an exception by its text."""
    found = (cause for cause, words in BY_EXCEPTION if re.search(words, text, re.IGNORECASE))
    return next(found, "exception")
