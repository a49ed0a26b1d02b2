"""The console on a real terminal: every screen of a whole visit, typed and looked at."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.processes.commands import User, line_of
from tests.support.processes.run_command import COUNT, run_words
from tests.support.processes.tmux import LIMIT, Tmux
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(240)]

PROMPT = "dap-mux>"
TRAIN = """\
import os

rank = int(os.environ["RANK"])


def step(number):
    loss = 10 * rank + number  # loss
    return loss


for number in range(3):
    step(number)
print("end", rank)
"""
PRINTS = """\
import time
from pathlib import Path

for n in range(12):
    print("\\33[2J line", n)
while not Path("go").exists():
    time.sleep(0.01)
"""
COMMAND = str(Path(sys.executable).with_name("dap-mux"))


def run(tmux: Tmux, user: User, n: int, script: str) -> None:
    """Run a job with a console in its terminal."""
    words = run_words("--console", "--words", "monarch", script, n=n)
    tmux.start([COMMAND, *words], user.folder, user.environ)


async def ready(tmux: Tmux, status: str, prompt: str = PROMPT) -> None:
    """Wait until an empty prompt stands below everything, and this status below it.

    From then on keys are its own: before that the terminal itself would echo them, or take them.
    The status alone may be that of the greeting, which stays where it is.
    """

    def stands() -> bool:
        *_, last, below = ["", "", *filter(None, tmux.screen().splitlines())]
        return last == prompt and below.endswith(f": {status}")

    try:
        await until(stands, within=LIMIT, what=f"{prompt} above {status}")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{tmux.screen()}") from None


async def test_a_visit(tmux: Tmux, user: User) -> None:
    script = user.script(TRAIN)
    loss = line_of(script, "loss")
    run(tmux, user, 4, script)
    screen = await tmux.shows("Enter 'help' for a list of commands.")
    assert "DAP-MUX" in screen
    await ready(tmux, "4 stopped")

    tmux.line("list")
    screen = await tmux.shows("│ stopped │ breakpoint │", times=4)
    for head in ("Actor Name", "Rank", "Coords", "Hostname", "Function", "Line No.", "State"):
        assert head in screen
    assert screen.count("train.<module>") == 4
    assert screen.count("│ stopped │ breakpoint │") == 4
    await ready(tmux, "4 stopped")

    tmux.line("b train.py:" + str(loss))
    await tmux.shows(f"1: train.py:{loss} in step")
    await ready(tmux, "4 stopped")
    tmux.line("cast all c")
    await tmux.shows(f"stopped at train.py:{loss} ")  # not those that stood before that
    await ready(tmux, "4 stopped")
    await tmux.clear()
    await look_at_rank_3(tmux, loss)
    await come_back(tmux)


async def look_at_rank_3(tmux: Tmux, loss: int) -> None:
    tmux.keys("att")
    tmux.keys("Tab")
    await tmux.shows(f"{PROMPT} attach")
    tmux.line("3")
    await tmux.shows(f"({loss})step()")
    await tmux.shows(f"{loss} ->     loss = 10 * rank + number")
    await ready(tmux, "4 stopped", "(Pdb 3)")
    tmux.line("n")
    await tmux.shows("return loss", times=2)
    await ready(tmux, "4 stopped", "(Pdb 3)")
    tmux.keys("los")
    tmux.keys("Tab")  # the rank knows its names
    await tmux.shows("(Pdb 3) loss")
    tmux.line(" + 1000")
    await tmux.shows("\n1030")
    await ready(tmux, "4 stopped", "(Pdb 3)")
    tmux.line("detach")
    await tmux.shows("Detached from debug session for rank 3")
    await ready(tmux, "4 stopped")


async def come_back(tmux: Tmux) -> None:
    await tmux.clear()
    tmux.line("attach 3")
    await tmux.shows("(Pdb 3)")
    await tmux.shows("\n1030\n")  # its last output
    await ready(tmux, "4 stopped", "(Pdb 3)")
    tmux.line("continue")
    await tmux.shows("Detached from debug session for rank 3")
    await ready(tmux, "4 stopped")  # it has come round to the line
    await tmux.clear()
    tmux.line("list")
    await tmux.shows("stopped │ breakpoint")
    await ready(tmux, "4 stopped")
    await tmux.clear()
    tmux.line("c")
    await tmux.shows("'cast all c' continues them")
    await ready(tmux, "4 stopped")
    tmux.line("c")
    await tmux.shows("exit code 0")
    history = tmux.history()
    assert "all ranks are released and run on" in history
    assert "[3] end 3" in history, "the job's own output"


@pytest.mark.heavy
@pytest.mark.alone  # Ctrl-C comes within the 5 s that the console waits for an answer
async def test_keys(tmux: Tmux, user: User) -> None:
    script = user.script(COUNT)
    run(tmux, user, 2, script)
    await ready(tmux, "2 stopped")
    tmux.keys("half a line", "C-c")
    await tmux.shows(PROMPT, times=2)
    await ready(tmux, "2 stopped")
    tmux.line("cast 0 open('asked', 'w').close() or __import__('time').sleep(1000)")
    asked = user.folder / "asked"
    await until(asked.exists, within=LIMIT, what="the command is under way")
    tmux.keys("C-c")
    await tmux.shows("interrupted; ranks are not affected")
    await ready(tmux, "2 stopped")
    tmux.keys("C-d")
    screen = await tmux.shows("you were the last debugger: all ranks are released and run on")
    assert "stopping every rank" not in screen, "Ctrl-C was not for the job"


async def test_a_ctrl_c_that_comes_as_a_signal_is_not_for_the_job(tmux: Tmux, user: User) -> None:
    """It is one between two prompts, and while something is printed above the prompt."""
    script = user.script(COUNT)
    run(tmux, user, 2, script)
    await ready(tmux, "2 stopped")
    (session,) = user.sessions.glob("*.json")
    tmux.keys("half a line")
    await tmux.shows("half a line")
    os.kill(int(session.stem), signal.SIGINT)
    await tmux.shows(PROMPT, times=2)
    await ready(tmux, "2 stopped")
    tmux.line("c")
    await tmux.shows("'cast all c' continues them")
    tmux.line("c")
    await tmux.shows("exit code 0")
    assert "stopping every rank" not in tmux.history()


async def test_what_ranks_print_stands_above_the_prompt(tmux: Tmux, user: User) -> None:
    script = user.script(PRINTS)
    run(tmux, user, 2, script)
    await ready(tmux, "2 stopped")
    tmux.line("cast all c")
    await tmux.shows("[1] \\x1b[2J line 11")
    await tmux.shows("[0] \\x1b[2J line 11")
    await ready(tmux, "2 running")
    shown = [line for line in tmux.history().splitlines() if "line" in line]
    for rank in range(2):
        mine = [line for line in shown if line.startswith(f"[{rank}] ")]
        assert mine == [f"[{rank}] \\x1b[2J line {n}" for n in range(12)], "whole and in order"
    (user.folder / "go").touch()
    await tmux.shows("exit code 0")
    assert "all ranks are gone" in tmux.history(), "the console has left by itself"
