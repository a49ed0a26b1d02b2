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
BLOCKS: Final = re.compile(r"sleep|wait|connect|read|open|acquire|\.get\(")
OPAQUE: Final = " object at "
NO_SYNC: Final = "no_sync"
STALE: Final = r"cache|old|prev|last|stale|saved|checkpoint|copy|snapshot|newest|settings|version"
MOST_EQUAL: Final = 3
MESSAGE: Final = re.compile(r"i?(send|recv)\b")
PEER_IS_GONE: Final = re.compile(
    r"Connection|BrokenPipe|EOFError|reset by peer|closed by|has left", re.IGNORECASE
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


def of_slow(looked: Looked, program: Program) -> tuple[str, int, str]:
    """Return ranks, line and cause of a job that is slow: whom the others wait for."""
    ranks, line, cause = of_hang(looked, program)
    if cause in ("lock", "deadlock of messages"):
        return ranks, line, cause
    stack = looked.suspects[0].stack
    if looked.others and not BLOCKS.search(program.text(line)):
        other = max(looked.others, key=lambda one: count(one.ranks)).stack
        own = [frame for frame in stack if frame not in other]
        line = own[0].line if own else line
    return ranks, line, "slow rank"


def of_hang(looked: Looked, program: Program) -> tuple[str, int, str]:
    """Return ranks, line and cause of a job that hangs."""
    suspect, others = looked.suspects[0], [each for each in looked.others if each.stack]
    if not suspect.stack:
        other = max(others, key=lambda one: count(one.ranks), default=None)
        return suspect.ranks, *_of_gone(looked, other, program)
    line = suspect.stack[-1].line
    holders = [each for each in others if count(each.ranks) < count(suspect.ranks)]
    if not suspect.waits and holders and _cause_of_wait(looked, line, program) == "lock":
        return holders[0].ranks, holders[0].stack[-1].line, "lock"
    if others and suspect.waits:
        other = max(others, key=lambda one: count(one.ranks))
        return suspect.ranks, *_of_diverging(suspect, other, looked, program)
    return suspect.ranks, line, _cause_of_wait(looked, line, program)


def cut(at: At) -> At:
    """Return where ranks call what they wait in, without the frames inside of that."""
    call = at.waits.split(" ")[0]
    for place, frame in enumerate(at.stack):
        name = frame.function.strip("_")
        if place and (name == call or (not call and COMMUNICATION.fullmatch(name))):
            return at._replace(stack=at.stack[:place], waits=at.waits or name)
    return at


def merged(found: Iterable[At]) -> list[At]:
    """Return ranks at one place together, those first that wait for nothing, fewest ranks first."""
    alike: dict[tuple[tuple[Frame, ...], bool], list[At]] = {}
    for one in found:
        alike.setdefault((one.stack, bool(one.waits)), []).append(one)
    groups = [
        At(",".join(each.ranks for each in same), stack, same[0].waits)
        for (stack, _), same in alike.items()
    ]
    return sorted(groups, key=lambda one: (bool(one.waits), count(one.ranks)))


def count(ranks: str) -> int:
    """Return how many ranks a set has, as answers write it: `0-2,5`."""
    total = 0
    for part in ranks.split(","):
        low, _, high = part.partition("-")
        total += int(high) - int(low) + 1 if low.isdecimal() and high.isdecimal() else 1
    return total


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
    on_the_way = [
        each
        for frame in (other.stack if other else ())
        for each in program.exits(1, frame.line)
        if program.function(each.lineno) is program.function(frame.line)
        and not isinstance(each, ast.Continue)
    ]
    killing = [each for each in ways if ENDS.search(head(each))]
    for choice in (on_the_way, by_rank, killing, ways):
        if choice:
            return min(choice, key=lambda each: abs(each.lineno - outer)).lineno, cause
    loop = next((block for block, _ in program.branches(outer) if isinstance(block, ast.For)), None)
    if loop is not None:
        return program.rank_dependent(loop.lineno) or loop.lineno, "uneven batches"
    return at, cause


def _of_diverging(suspect: At, other: At, looked: Looked, program: Program) -> tuple[int, str]:
    """Where a rank went another way than the rest: what encloses only one of the two places."""
    usual = CAUSE_OF_VERDICT.get(looked.verdict, "mismatched collective")
    if MESSAGE.match(other.waits) and not MESSAGE.match(suspect.waits):
        return other.stack[-1].line, "deadlock of messages"
    pairs = [*zip(suspect.stack, other.stack, strict=False)]
    place = next((at for at, (mine, its) in enumerate(pairs) if mine != its), len(pairs) - 1)
    here, there = pairs[place]
    if here == there:
        return program.rank_dependent(here.line) or here.line, usual
    mine, its = program.branches(here.line), program.branches(there.line)
    for block, part in mine:
        if (block, part) not in its and isinstance(block, ast.ExceptHandler):
            return block.lineno, "swallowed exception"
    only_theirs = [block for block, part in its if (block, part) not in mine]
    if only_theirs:
        return _of_missed(only_theirs, here.line, program, usual)
    return _of_ahead(suspect.stack[place:], other.stack[place:], program, usual)


def _of_ahead(
    mine: Sequence[Frame], its: Sequence[Frame], program: Program, usual: str
) -> tuple[int, str]:
    """Of a rank that is at another line of the same block: it has left something out."""
    here, there = mine[0], its[0]
    first, last = sorted((here.line, there.line))
    skips = [each for each in program.exits(first, last) if isinstance(each, ast.Continue)]
    if skips:
        return skips[0].lineno, "early exit"
    inside = [block for frame in its[1:] for block, _ in program.branches(frame.line)]
    if here.line > there.line and inside:
        return _of_missed(inside, here.line, program, usual)
    return (mine[-1] if here.line < there.line else here).line, usual


def _of_missed(
    blocks: Sequence[ast.AST], here: int, program: Program, usual: str
) -> tuple[int, str]:
    """Of a rank that has left the blocks in which all the others are."""
    loops = [block for block in blocks if isinstance(block, ast.For | ast.While)]
    if loops and loops[0].lineno <= program.says(NO_SYNC) <= (loops[0].end_lineno or 0):
        return program.says(NO_SYNC), "missed sync"
    for block in loops:
        leaves = [
            each
            for each in program.exits(block.lineno, block.end_lineno or block.lineno)
            if isinstance(each, ast.Break | ast.Return)
        ]
        if leaves:
            return leaves[0].lineno, "early exit"
    caught = [block for block in blocks if isinstance(block, ast.Try) and block.handlers]
    if caught:
        return caught[0].handlers[0].lineno, "swallowed exception"
    if loops and not re.search(r"\.(items|keys|values)\(\)", head(loops[0])):
        return loops[0].lineno, "uneven batches"
    return getattr(next(iter(blocks)), "lineno", here), usual


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


def made_by_rank(
    node: ast.stmt, values: Mapping[str, Mapping[str, Any]], program: Program
) -> ast.stmt | None:
    """Return where a statement's source comes from that shows no value, but is made by rank."""
    for name in used(node):
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


def cause_of_exception(text: str) -> str:
    """Return the kind of an exception by its text."""
    found = (cause for cause, words in BY_EXCEPTION if re.search(words, text, re.IGNORECASE))
    return next(found, "exception")
