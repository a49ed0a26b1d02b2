"""docs/console.md is true: every line at its prompts is typed, and the whole answer is compared."""

from __future__ import annotations

import shutil

import pytest

from tests.support.clients.console_pages import ROOT, announced, answer, answered, typed_lines
from tests.support.clients.consoles import console_of_job
from tests.support.processes.commands import User

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


async def test_every_line_of_the_page(user: User) -> None:
    shutil.copy(ROOT / "examples/data_parallel.py", user.folder)
    run, console = await console_of_job(user, "data_parallel.py", "--seconds", "0", n=4)
    for line, shown in typed_lines("docs/console.md"):
        said = answer(await console.does(line), user.folder)
        assert answered(said) == answered(shown), line
        # That the ranks have stopped at the first line may be said as late as here.
        assert {*announced(shown)} <= {*announced(said)}, line
    console.type("release all")
    assert (await run.ends()).code == 0
