"""The console's breakpoints: one list of lines and functions, and where a file is looked for."""

from __future__ import annotations

import pytest

from tests.support.clients.console_pages import answered
from tests.support.clients.consoles import console_of_job
from tests.support.processes.commands import User, line_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

PROGRAM = """\
import os
import sys

sys.path.append(os.path.join(os.getcwd(), "library"))
rank = int(os.environ["RANK"])


def step(number):
    loss = 10 * rank + number  # loss
    return loss


def report(number):
    return number  # report


for number in range(6):
    step(number)
    report(number)

import helper  # import

helper.assist(3)
"""
HELPER = """\
def assist(number):
    return number + 1  # assist
"""


async def test_lines_and_functions_have_one_list(user: User) -> None:
    _, console = await console_of_job(user, user.script(PROGRAM), n=2)
    loss = line_of(str(user.folder / "train.py"), "loss")

    async def says(line: str) -> list[str]:
        return answered((await console.does(line)).splitlines())

    said = await says(f"b train.py:{loss}, number == 1")
    assert said == [f"1: train.py:{loss} in step, if number == 1   (2 ranks)"]
    assert await says("b report") == ["2: function report   (2 ranks)"]
    said = await says(f"on 1 tb {loss}")
    assert said == [f"3: train.py:{loss} in step   (1 rank; temporary)"]
    assert [line.partition(":")[0] for line in await says("b")] == ["1", "2", "3"]

    said_at_stop = await console.does("c")
    assert f"1 stopped at train.py:{loss} step (breakpoint 1 or 3)\n" in said_at_stop
    assert "(breakpoint 2)\n" in said_at_stop, "rank 0 has come to the function"
    assert [line.partition(":")[0] for line in await says("b")] == ["1", "2"]

    assert await says("disable 2") == ["2: function report   (2 ranks; disabled)"]
    said_at_stop = await console.does("c")
    assert f"0-1 stopped at train.py:{loss} step (breakpoint 1)\n" in said_at_stop
    assert await says("number") == ["{0-1}: 1"]
    said = await says("condition 1 number == 3")
    assert said == [f"1: train.py:{loss} in step, if number == 3   (2 ranks)"]
    await says("c")
    assert await says("number") == ["{0-1}: 3"]
    await says("condition 1")
    assert await says("ignore 1 1") == [f"1: train.py:{loss} in step   (2 ranks; after 1 hits)"]
    assert "not both" in (await says("condition 1 number == 4"))[0]
    await says("c")
    assert await says("number") == ["{0-1}: 5"]

    assert await says("enable 2") == ["2: function report   (2 ranks)"]
    assert "has no breakpoint '9'" in (await says("cl 9"))[0]
    cleared = [f"cleared 1: train.py:{loss} in step", "cleared 2: function report"]
    assert await says("cl 1 2") == cleared
    console.type("release all")


async def test_a_file_on_the_ranks_own_path(user: User) -> None:
    (user.folder / "library").mkdir()
    path = user.script(HELPER, "library/helper.py")
    assist = line_of(path, "assist")
    _, console = await console_of_job(user, user.script(PROGRAM), n=2)
    assert "no rank knows one" in await console.does(f"b helper.py:{assist}")
    await console.does(f"b train.py:{line_of(str(user.folder / 'train.py'), 'import')}")
    await console.does("c")
    said = await console.does(f"b helper.py:{assist}")
    assert f": library/helper.py:{assist} in assist   (2 ranks)\n" in said
    assert f"0-1 stopped at helper.py:{assist} assist (breakpoint" in await console.does("c")
    console.type("release all")
