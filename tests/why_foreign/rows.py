"""What a row of the table says, and when an answer agrees with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
MARKER: Final = "# culprit"
MARKED_LINES: Final = "@culprit"


class Fault(NamedTuple):
    """A program that hangs, and what a right answer says of it.

    file: in `faults`; the program's docstring says where and what was reported.
    cause: an answer contains, in any case, at least one of the alternatives of each of these
    groups, which `|` separates. `@culprit` stands for the marked lines of the program, as "x.py:7"
    or "line 7". Words in the name of the file do not count.
    culprits: the ranks to accuse; another set is as right where there is more than one.
    """

    file: str
    cause: tuple[str, ...]
    because: str
    culprits: tuple[frozenset[int], ...] = (frozenset({2}),)


class Healthy(NamedTuple):
    """A program that goes on; a right answer accuses no rank."""

    file: str
    because: str


def marked_lines(program: Path) -> list[int]:
    """Return the numbers of the lines of a program that are marked as the culprit's."""
    lines = program.read_text("utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if MARKER in line]


def places(fault: Fault) -> list[str]:
    """Return the marked lines, as an answer may write them."""
    lines = marked_lines(HERE / "faults" / fault.file)
    return [f"{fault.file}:{line}" for line in lines] + [f"line {line}" for line in lines]


def missing(fault: Fault, answer: str) -> list[str]:
    """Return the groups of which the text of an answer contains no alternative."""
    words = answer.replace(Path(fault.file).stem, "")

    def contained(alternative: str) -> bool:
        if alternative == MARKED_LINES:
            return any(re.search(rf"{re.escape(each)}(?!\d)", answer) for each in places(fault))
        return alternative.casefold() in words.casefold()

    return [group for group in fault.cause if not any(map(contained, group.split("|")))]


def is_right(fault: Fault, accused: frozenset[int], answer: str) -> bool:
    """Whether an answer accuses the right ranks, and says why."""
    return accused in fault.culprits and not missing(fault, answer)
