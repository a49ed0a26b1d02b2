"""The rules of the scripted agent: from stacks, values and a program's text to a line and a cause.

They are the same for all bugs, and the same whether stacks come from tools or from py-spy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.agent_score.program import COMMUNICATION, ENDS, Program, head

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
    ("nan", r"\bnan\b(?! 0)|finite|\binf\b"),
    ("dead worker", r"worker|BrokenProcessPool|killed|signal|SIGKILL"),
    ("mismatched collective", r"mismatch|collective|shape|size"),
)
BLOCKS: Final = re.compile(r"sleep|wait|connect|read|open|acquire|\.get\(")
NO_SYNC: Final = "no_sync"
MORE: Final = "more"
WAITS_FOR_ANY: Final = "waits for a connection"
DIFFERENCE: Final = re.compile(
    r"in (?P<function>\S+): (?P<name>\w+) = (?P<one>.*) in ranks? (?P<of_one>[\d,-]+), "
    r"(?:(?P=name) = (?P<other>.*) in ranks? (?P<of_other>[\d,-]+)|more in the others)"
)
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


class Difference(NamedTuple):
    """A variable that the ranks `few` have with another `value` than most."""

    function: str
    name: str
    few: str
    value: str
    most: str

    @property
    def lead(self) -> int:
        """How far the few are ahead, if it counts."""
        numbers = self.value.lstrip("-"), self.most.lstrip("-")
        if not all(map(str.isdecimal, numbers)):
            return -1 if self.most == MORE else 0
        return int(self.value) - int(self.most)


class Looked(NamedTuple):
    """What is known of a job that does not get on; `said`: in words."""

    suspects: Sequence[At]
    others: Sequence[At]
    verdict: str = ""
    said: str = ""
    differences: Sequence[Difference] = ()


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


def differences(evidence: Iterable[str]) -> list[Difference]:
    """Return the variables that few ranks have with another value, by the answer of `why`."""
    found = (DIFFERENCE.fullmatch(text) for text in evidence)
    return [
        Difference(one["function"], one["name"], one["of_other"], one["other"], one["one"])
        if one["other"] is not None
        else Difference(one["function"], one["name"], one["of_one"], one["one"], MORE)
        for one in found
        if one is not None
    ]


def of_slow(looked: Looked, program: Program) -> tuple[str, int, str]:
    """Return ranks, line and cause of a job that is slow: whom the others wait for."""
    ranks, line, cause = of_hang(looked, program)
    return ranks, line, cause if cause in ("lock", "deadlock of messages") else "slow rank"


def of_hang(looked: Looked, program: Program) -> tuple[str, int, str]:
    """Return ranks, line and cause of a job that hangs."""
    suspect, others = looked.suspects[0], [each for each in looked.others if each.stack]
    if not suspect.stack:
        other = max(others, key=lambda one: count(one.ranks), default=None)
        return suspect.ranks, *_of_gone(looked, other, program)
    line = suspect.stack[-1].line
    apart = [
        each for each in looked.differences if not ranks_in(each.few) & ranks_in(suspect.ranks)
    ]
    if WAITS_FOR_ANY in looked.said and apart:
        return apart[0].few, *_of_different(apart[0], program)
    holders = [each for each in others if count(each.ranks) < count(suspect.ranks)]
    if not suspect.waits and holders and _cause_of_wait(looked, line, program) == "lock":
        return holders[0].ranks, holders[0].stack[-1].line, "lock"
    if others and suspect.waits:
        other = max(others, key=lambda one: count(one.ranks))
        return suspect.ranks, *_of_diverging(suspect, other, looked, program)
    return suspect.ranks, line, _cause_of_wait(looked, line, program)


def in_circle(looked: Looked) -> frozenset[int]:
    """Return the ranks that wait for each other, if that is what is said."""
    found = re.search(r"^ranks ([\d,-]+) wait for each other", looked.said)
    return ranks_in(found[1]) if found else frozenset()


def began(circle: frozenset[int], differences: Sequence[Difference]) -> str:
    """Return which ranks of a circle are behind the others, or else unlike them; "" for unknown."""
    inside = [one for one in differences if ranks_in(one.few) <= circle]
    behind = [one for one in inside if one.lead < 0]
    return next((one.few for one in (*behind, *inside)), "")


def of_attributes(values: Iterable[Mapping[str, Any]]) -> list[Difference]:
    """Return in which attributes few ranks are unlike most, by dicts as ranks print them."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in values:
        for name, value in literal(one["value"]).items():
            found.setdefault(name, {}).setdefault(repr(value), []).append(str(one["ranks"]))
    told = []
    for name, texts in found.items():
        groups = sorted((count(",".join(of)), text, ",".join(of)) for text, of in texts.items())
        if len(groups) == 2 and groups[0][0] < groups[1][0]:
            told.append(Difference("", name, groups[0][2], groups[0][1], groups[1][1]))
    return told


def literal(text: str) -> dict[str, Any]:
    """Return a dict by its text, {} for anything else."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {}
    return found if isinstance(found, dict) else {}


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


def ranks_in(text: str) -> frozenset[int]:
    """Return the ranks of a set, as answers write it."""
    found: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdecimal():
            found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)


def _of_different(one: Difference, program: Program) -> tuple[int, str]:
    """Of ranks that have another value: what they do with it."""
    uses = program.uses(one.name, one.function)
    for node in uses:
        for block, part in program.branches(node.lineno):
            if isinstance(block, ast.Try) and part == "body" and block.handlers:
                return block.handlers[0].lineno, "swallowed exception"
    return uses[0].lineno if uses else 0, "other wait"


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
    counted = (one.lead for one in looked.differences if one.few == suspect.ranks)
    lead = next(filter(None, counted), 0)
    missed = [block for block, part in its if (block, part) not in mine]
    if missed:
        return _of_missed(missed, here.line, program, usual)
    if lead < 0 or (not lead and here.line < there.line):
        return _of_more(suspect.stack[place:], program), usual
    return _of_skipped(here, other.stack[place:], program, usual)


def _of_skipped(here: Frame, its: Sequence[Frame], program: Program, usual: str) -> tuple[int, str]:
    """Of a rank that has left out what all the others are in, though not the blocks around."""
    first, last = sorted((here.line, its[0].line))
    skips: list[ast.stmt] = [
        each for each in program.exits(first, last) if isinstance(each, ast.Continue)
    ]
    skips += [
        each
        for frame in its[1:]
        for each in program.exits(1, frame.line)
        if isinstance(each, ast.Return)
        and program.function(each.lineno) is program.function(frame.line)
    ]
    if skips:
        return skips[0].lineno, "early exit"
    inner = [block for frame in its[1:] for block, _ in program.branches(frame.line)]
    return _of_missed(inner, here.line, program, usual) if inner else (here.line, usual)


def _of_more(stack: Sequence[Frame], program: Program) -> int:
    """Return the line of a call that a rank makes and the others do not."""
    statement = program.statement(stack[0].line)
    by_rank = statement is not None and program.is_guarded(statement)
    return stack[0 if by_rank else -1].line


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
    chosen = [block for block in blocks if isinstance(block, ast.If) and "%" not in head(block)]
    if chosen:
        return chosen[-1].lineno, usual
    if loops and not re.search(r"\.(items|keys|values)\(\)", head(loops[0])):
        return loops[0].lineno, "uneven batches"
    return getattr(next(iter(blocks)), "lineno", here), usual


def cause_of_exception(text: str) -> str:
    """Return the kind of an exception by its text."""
    found = (cause for cause, words in BY_EXCEPTION if re.search(words, text, re.IGNORECASE))
    return next(found, "exception")
