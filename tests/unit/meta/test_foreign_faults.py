"""The table of tests/why_foreign and its programs belong together."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tests.why_foreign.blind import BLIND
from tests.why_foreign.expected import FAULTS, HEALTHY
from tests.why_foreign.later import LATER
from tests.why_foreign.newest import NEWEST
from tests.why_foreign.rows import HERE, Fault, Healthy, is_right, marked_lines, missing

ALL: Final = (*FAULTS, *LATER, *NEWEST, *BLIND)
SIZE: Final = 4
LONGEST: Final = 45
LINK: Final = re.compile(r"^https://github\.com(/[\w.-]+){4,}:", re.MULTILINE)


def names(folder: str) -> list[str]:
    return sorted(path.name for path in (HERE / folder).glob("*.py"))


def program(row: Fault | Healthy) -> Path:
    return HERE / ("faults" if isinstance(row, Fault) else "healthy") / row.file


def test_every_program_has_its_row() -> None:
    assert sorted(row.file for row in ALL) == names("faults")
    assert [row.file for row in HEALTHY] == names("healthy")
    assert len(FAULTS) >= 34
    assert len(HEALTHY) == 8


@pytest.mark.parametrize("row", [*ALL, *HEALTHY], ids=lambda row: row.file)
def test_a_program_compiles_and_says_where_its_fault_was_reported(row: Fault | Healthy) -> None:
    text = program(row).read_text("utf-8")
    compile(text, row.file, "exec")
    assert LINK.search(ast.get_docstring(ast.parse(text)) or "")
    assert len(text.splitlines()) <= LONGEST
    assert row.because


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.file)
def test_a_row_expects_what_an_answer_can_say(row: Fault) -> None:
    assert marked_lines(program(row))
    assert row.culprits
    assert all(ranks <= set(range(SIZE)) for ranks in row.culprits)
    assert all(each for group in row.cause for each in group.split("|"))


class TestAnswers:
    """How an answer is compared with its row."""

    row = next(row for row in FAULTS if row.file == "join_before_drain.py")

    def test_a_marked_line_is_a_place(self) -> None:
        (line,) = marked_lines(program(self.row))
        answer = f"Rank 2 waits for a child in join_before_drain.py:{line}."
        assert is_right(self.row, frozenset({2}), answer)

    def test_another_line_is_none_nor_is_the_name_of_the_file(self) -> None:
        (line,) = marked_lines(program(self.row))
        answer = f"Rank 2 waits for a child in join_before_drain.py:{line}1."
        assert missing(self.row, answer) == [self.row.cause[0]]

    def test_the_wrong_rank_is_wrong(self) -> None:
        assert not is_right(self.row, frozenset({1}), "join of a child process")
        assert not is_right(self.row, frozenset({1, 2}), "join of a child process")
