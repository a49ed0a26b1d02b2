"""docs/agents.md has the table that `make agent-score` writes, with a row for each planted bug."""

from __future__ import annotations

import re
from typing import Final

from tests.agent_score.expected import BUGS
from tests.agent_score.score import BEGIN, END, HEAD, LATE, PAGE, right

PART: Final = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
CELL: Final = re.compile(r"(-|not run|(rank|line|cause)(, (line|cause))*)")


def cells() -> list[list[str]]:
    lines = [line for line in PART.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines]


def test_each_bug_has_a_row() -> None:
    head, *rows = cells()
    assert tuple(head) == HEAD
    assert [one[0] for one in rows] == [f"`{bug.name}`{LATE[bug.late]}" for bug in BUGS]


def test_a_row_says_what_was_right() -> None:
    for _, symptom, tools, calls, size, by_hand, its_size in cells()[1:]:
        assert symptom in ("hang", "wrong", "crash", "slow")
        assert CELL.fullmatch(tools)
        assert CELL.fullmatch(by_hand)
        assert int(calls) <= 8
        assert float(size) <= 40
        assert float(its_size) >= 0


def test_an_answer_is_compared_with_its_row() -> None:
    bug = BUGS[0]
    named = {"ranks": "0-7", "file": str(bug.path), "line": bug.lines[0], "cause": bug.cause}
    assert right(bug, {"named": named}) == (True, True, True)
    assert right(bug, {"named": {**named, "ranks": "3"}}) == (False, True, True)
    assert right(bug, {"named": {**named, "line": 1, "cause": ""}}) == (True, False, False)
