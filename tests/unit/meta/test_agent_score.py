"""docs/agents.md has the sums that `make agent-score` writes, over every planted bug."""

from __future__ import annotations

import re
from typing import Final

from tests.agent_score.expected import BUGS
from tests.agent_score.score import BEGIN, END, PAGE, SYMPTOM_HEAD, SYMPTOMS, framed, right

PART: Final = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
SUM: Final = re.compile(r"rank and line in (\d+) of (\d+), cause in (\d+), all three in (\d+)")


def test_each_symptom_has_a_row_of_all_its_bugs() -> None:
    head, _, *rows = [line for line in PART.splitlines() if line.startswith("|")]
    assert head == framed(SYMPTOM_HEAD, ())[0]
    assert [row.split()[1] for row in rows] == list(SYMPTOMS)
    for symptom, row in zip(SYMPTOMS, rows, strict=True):
        by_tools, by_hand = ([int(one) for one in found] for found in SUM.findall(row))
        assert by_tools[1] == sum(bug.symptom == symptom for bug in BUGS)
        for both, asked, cause, everything in (by_tools, by_hand):
            assert everything <= min(both, cause)
            assert max(both, cause) <= asked


def test_an_answer_is_compared_with_its_row() -> None:
    bug = BUGS[0]
    named = {"ranks": "0-7", "file": str(bug.path), "line": bug.lines[0], "cause": bug.cause}
    assert right(bug, {"named": named}) == (True, True, True)
    assert right(bug, {"named": {**named, "ranks": "3"}}) == (False, True, True)
    assert right(bug, {"named": {**named, "line": 1, "cause": ""}}) == (True, False, False)
