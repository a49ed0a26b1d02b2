"""The same rules without the tools: `py-spy dump` of each rank, and the ranks' logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from tests.agent_score.agent import Judge, Symptom
from tests.agent_score.program import Program
from tests.agent_score.rules import (
    PEER_IS_GONE,
    At,
    Frame,
    Looked,
    Named,
    cause_of_exception,
    cut,
    merged,
    of_hang,
    of_slow,
)
from tests.agent_score.values import cause_of_value

TRACEBACK: Final = "Traceback (most recent call last)"
LAST_LINES: Final = 5
MARKED: Final = re.compile(r"^\[(?:\w*:?rank)?(\d+)\]:?\s?", re.MULTILINE)
"""How torchrun and torch mark a rank's lines."""
SPIED: Final = re.compile(r"^    (\S+) \((.+):(\d+)\)$", re.MULTILINE)
"""A frame as py-spy prints it."""


def named(
    symptom: Symptom,
    at: str,
    path: str,
    text: str,
    dumps: Mapping[int, str],
    logs: Mapping[int, str],
) -> Named:
    """Name rank, place and cause; `text` is the program's, which a user has on disk."""
    program = Program(text.splitlines())
    if symptom == "crash":
        return _of_traceback(path, program, logs)
    if symptom == "wrong":
        return _of_prints(path, program, at, logs)
    judge = of_slow if symptom == "slow" else of_hang
    return _of_stacks(path, program, dumps, logs, judge)


def _of_stacks(
    path: str,
    program: Program,
    dumps: Mapping[int, str],
    logs: Mapping[int, str],
    judge: Judge,
) -> Named:
    stacks: dict[tuple[Frame, ...], list[int]] = {}
    for rank, text in dumps.items():
        _, _, main = text.partition('"MainThread"\n')
        own = [one for one in SPIED.findall(main.partition("\nThread ")[0]) if one[1] == path]
        stack = tuple(Frame(file, int(line), name) for name, file, line in reversed(own))
        stacks.setdefault(stack, []).append(rank)
    gone = sorted({*logs} - {*dumps} - {-1})
    groups = [At(_set(ranks), stack) for stack, ranks in stacks.items()]
    if gone:
        said = " left: ".join(["exit", *(_last_traceback(logs[rank]) for rank in gone)])
        groups.insert(0, At(_set(gone), ()))
    else:
        said = ""
    if not groups:
        return Named("", path, 0, "other wait")
    groups = merged(map(cut, groups))
    ranks, line, cause = judge(Looked(groups[:1], groups[1:], "", said), program)
    return Named(ranks, path, line, cause)


def _of_traceback(path: str, program: Program, logs: Mapping[int, str]) -> Named:
    """Of the first rank whose last traceback does not say that another one is gone."""
    found = {rank: _last_traceback(text) for rank, text in by_rank(logs).items()}
    found = {rank: text for rank, text in found.items() if text}
    first = {rank: text for rank, text in found.items() if not PEER_IS_GONE.search(text)} or found
    if not first:
        return Named("", path, 0, "exception")
    rank, text = next(iter(first.items()))
    lines = re.findall(rf'File "{re.escape(path)}", line (\d+)', text)
    return Named(str(rank), path, int(lines[-1]) if lines else 0, cause_of_exception(text[-500:]))


def _last_traceback(text: str) -> str:
    return TRACEBACK + text.rpartition(TRACEBACK)[2] if TRACEBACK in text else ""


def _of_prints(path: str, program: Program, at: str, logs: Mapping[int, str]) -> Named:
    """The rank whose last lines are unlike the others', and the line on which they depend."""
    last = {rank: text.splitlines()[-LAST_LINES:] for rank, text in by_rank(logs).items()}
    told = {rank: str([_without(rank, one) for one in lines]) for rank, lines in last.items()}
    usual, times = Counter(told.values()).most_common(1)[0] if told else ("", 0)
    odd = [rank for rank, text in told.items() if text != usual] if times > 1 else []
    line = next((n for n, one in enumerate(program.lines, 1) if at and at in one), 0)
    line = program.rank_dependent(line) or line
    nan = any("nan" in text for text in told.values())
    return Named(_set(odd), path, line, cause_of_value(program.statement(line), program, nan=nan))


def _without(rank: int, line: str) -> str:
    return re.sub(rf"\brank\W*{rank}\b", "rank", line)


def by_rank(logs: Mapping[int, str]) -> dict[int, str]:
    """Return logs by rank; of a launcher's, the lines that are marked with one."""
    if -1 not in logs:
        return dict(logs)
    found: dict[int, str] = {}
    for line in logs[-1].splitlines():
        if mark := MARKED.match(line):
            rank = int(mark[1])
            found[rank] = f"{found.get(rank, '')}{line[mark.end() :]}\n"
    return found or {0: logs[-1]}


def _set(ranks: list[int]) -> str:
    return ",".join(map(str, sorted(ranks)))
