"""docs/console.md is true: every line at its prompts is typed, and what it shows is shown."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.clients.consoles import PipedConsole
from tests.support.processes.commands import User, user
from tests.support.processes.run_command import run_words

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"(?:dap-mux>|\(Pdb [^)]*\)) (.*)")


class Typed(NamedTuple):
    """A line at a prompt, and the lines that the page shows below it."""

    line: str
    shown: list[str]


def page() -> list[Typed]:
    typed: list[Typed] = []
    for block in BLOCK.findall((ROOT / "docs/console.md").read_text("utf-8")):
        for line in block.splitlines():
            found = PROMPT.fullmatch(line)
            if found:
                typed.append(Typed(found[1], []))
            else:
                typed[-1].shown.append(line)
    return typed


async def test_every_line_of_the_page(user: User) -> None:
    shutil.copy(ROOT / "examples/data_parallel.py", user.folder)
    words = run_words("--console", "data_parallel.py", "--seconds", "0", n=4)
    run = await user.start(*words, piped=True)
    console = PipedConsole(run)
    while "4 stopped" not in await console.does("list"):
        await console.sees("stopped at")
    for line, shown in page():
        said = await console.does(line)
        for expected in shown:
            assert expected in said, (line, expected, said)
        if line == "cast all c":
            while said.count("data_parallel.train |        146") < 4:
                said = await console.does("list")
        assert "unknown command" not in said, line
    console.type("c")
    assert (await run.ends()).code == 0
