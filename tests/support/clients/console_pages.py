"""Pages that show the console: what is typed there, and the whole answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDER: Final = "/home/me/job"
"""The folder of the job, as pages name it."""
_BLOCK: Final = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT: Final = re.compile(r"\[[^\]]*\]> (.*)")
_PRINTED: Final = re.compile(r"\[[^\]]+\] ")  # what ranks print comes whenever they print it
_ANNOUNCED: Final = re.compile(r"(?:ranks? )?\S+ stopped at |\d+ ->  ")  # so does this


class Typed(NamedTuple):
    """A line at a prompt, and the lines that the page shows below it."""

    line: str
    shown: list[str]


def typed_lines(page: str) -> list[Typed]:
    """Every line at a prompt of a page (`docs/console.md`), in order."""
    return [line for block in blocks(page) for line in typed_in(block)]


def blocks(page: str) -> list[str]:
    """What a page shows of terminals, block by block."""
    return _BLOCK.findall((ROOT / page).read_text("utf-8"))


def typed_in(block: str) -> list[Typed]:
    """The lines at prompts of one block, in order."""
    typed: list[Typed] = []
    for line in block.splitlines():
        found = _PROMPT.fullmatch(line)
        if found:
            typed.append(Typed(found[1], []))
        else:
            typed[-1].shown.append(line)
    return typed


def answer(said: str, folder: Path) -> list[str]:
    """What the console said to a line, as pages show it, for a job in that folder."""
    lines = said.replace(str(folder), FOLDER).splitlines()
    return [line for line in lines if not _PRINTED.match(line)]


def announced(lines: list[str]) -> list[str]:
    """Those of the lines that come by themselves, as soon as a rank stops."""
    return [line for line in lines if _ANNOUNCED.match(line)]


def answered(lines: list[str]) -> list[str]:
    """The others."""
    return [line for line in lines if not _ANNOUNCED.match(line)]
