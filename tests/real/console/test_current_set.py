"""The current set: a whole visit on a program with two faults, at a terminal and by a pipe."""

from __future__ import annotations

import shutil

import pytest

from tests.real.console.test_console_blocked import WAITS
from tests.real.console.test_console_terminal import COMMAND
from tests.support.clients.console_pages import ROOT
from tests.support.clients.consoles import PipedConsole
from tests.support.processes.commands import User, line_of
from tests.support.processes.run_command import run_words
from tests.support.processes.tmux import Tmux

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

FAULTS = """\
import data_parallel
from data_parallel import load_batch


def batch_of(rank, step):
    if rank == 3 and step == 20:
        raise ValueError(f"shard-{rank} is truncated at step {step}")  # truncated
    return load_batch(rank, step)


data_parallel.load_batch = batch_of
data_parallel.main()
"""
REDUCE, STEP, REPORT = 146, 147, 148  # lines of examples/data_parallel.py
OPTIONS = ("--steps", "30", "--seconds", "0")
VISIT = (
    (
        f"b data_parallel.py:{REDUCE}, step == 5",
        (f"1: data_parallel.py:{REDUCE} in train, if step == 5   (4 ranks)",),
        "[0-3]>",
    ),
    ("c", (f"0-3 stopped at data_parallel.py:{REDUCE} train (breakpoint 1)",), "[0-3]>"),
    ("cmp loss", ("340268", "0.0468", "min 0.0468862"), "[0-3]>"),
    ("on 2", (f"2 at data_parallel.py:{REDUCE} train", f"{REDUCE} ->"), "[2]>"),
    ("on all - 2 p batch.unit", ("{0-1,3}: 'm'",), "[2]>"),
    (
        "n",
        ("`on 0-1,3 n` lets all on", "2 runs: waits in all_reduce_mean for ranks 0-1,3"),
        "[2 run]>",
    ),
    ("on 0-1,3 n", (f"0-3 stopped at data_parallel.py:{STEP} train (step)",), "[2]>"),
    ("on", ("on 2", "before: all"), "[2]>"),
    ("on -", (f"0-3 at data_parallel.py:{STEP} train",), "[0-3]>"),
    ("on 9", ("no rank 9 in group job: it has 0-3",), "[0-3]>"),
    ("display step", ("5",), "[0-3]>"),
    ("n", (f"0-3 stopped at data_parallel.py:{REPORT} train (step)",), "[0-3]>"),
    ("b report, rank == 9", ("2: function report, if rank == 9   (4 ranks)",), "[0-3]>"),
    ("disable 1 2", ("1: data_parallel.py:", "disabled)", "2: function report"), "[0-3]>"),
    ("c", ("batch_of   ValueError: shard-3 is truncated at step 20",), "[0-3 run:0-2]>"),
    ("ranks", ("batch_of", "ValueError:", "shard-3 is"), "[0-3 run:0-2]>"),
    ("why", ("rank 3 stands in the debugger", "try: on 3 p __exception__"), "[0-3 run:0-2]>"),
    ("on 3 p __exception__[1]", ("ValueError('shard-3 is truncated",), "[0-3 run:0-2]>"),
)


def files(user: User) -> str:
    """Put the program into the user's folder."""
    shutil.copy(ROOT / "examples/data_parallel.py", user.folder)
    return user.script(FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("width", [130, 40])
async def test_a_visit(tmux: Tmux, user: User, width: int) -> None:
    script = files(user)
    words = [COMMAND, *run_words("--console", script, *OPTIONS, n=4)]
    tmux.start(words, user.folder, user.environ, width=width)
    await tmux.shows("4 stopped")
    await tmux.prompts("[0-3]>")
    for line, shown, prompt in VISIT:
        await tmux.clear()
        tmux.line(line)
        for words_shown in shown:
            await tmux.shows_folded(words_shown)
        await tmux.prompts(prompt)
    assert f"train.py:{line_of(script, 'truncated')}" in tmux.history()
    await leaves(tmux)


async def leaves(tmux: Tmux) -> None:
    """`q` asks while a rank is stopped; only `y` leaves."""
    for answer in ("n", "y"):
        await tmux.clear()
        tmux.line("q")
        await tmux.shows_folded("1 rank is stopped: let all ranks run on and leave? [y/N]")
        tmux.line(answer)
        if answer == "n":
            await tmux.prompts("[0-3 run:0-2]>")
    await tmux.shows("exit code 1")


async def test_a_script(user: User) -> None:
    script = files(user)
    run = await user.start(*run_words("--console", script, *OPTIONS, n=4), piped=True)
    console = PipedConsole(run)  # its first line is typed before any rank has begun
    for line, shown, _ in VISIT:
        said = await console.does(line)
        for words in shown:
            assert words.removesuffix("   (4 ranks)") in said, line
    console.type("quit")
    assert (await run.ends()).code == 1


async def test_several_lines_are_a_command_each(user: User) -> None:
    script = files(user)
    run = await user.start(*run_words("--console", script, *OPTIONS, n=4), piped=True)
    console = PipedConsole(run)
    console.type("on 1", "40 + 2", "on - ", "on 0,2 rank = 7", "c")
    await console.sees("42\n")
    await console.sees("ValueError: shard-3 is truncated at step 20")
    console.type("quit")
    assert (await run.ends()).code == 1


@pytest.mark.slow
async def test_ctrl_c_drops_what_was_typed_ahead(tmux: Tmux, user: User) -> None:
    """It says who still runs; the second within a second pauses the set."""
    script = user.script(WAITS)
    words = [COMMAND, *run_words("--console", script, n=2)]
    tmux.start(words, user.folder, user.environ)
    await tmux.prompts("[0-1]>")
    tmux.line(f"b {line_of(script, 'wait')}")
    await tmux.shows("1: train.py:")
    tmux.line("c")
    await tmux.shows(f"0-1 stopped at train.py:{line_of(script, 'wait')} ")
    await tmux.prompts("[0-1]>")
    tmux.line("on 0")
    await tmux.prompts("[0]>")
    tmux.line("n")
    await tmux.shows("rank 0 still runs; Ctrl-C brings the prompt back, and changes nothing there")
    tmux.line("40 + 2")
    tmux.keys("C-c")
    await tmux.shows("0 still runs: 'pause 0' stops it")
    await tmux.prompts("[0 run]>")
    tmux.line("on 1")
    await tmux.prompts("[1]>")
    assert "42" not in tmux.history().split()
    tmux.line("on -")
    await tmux.prompts("[0 run]>")
    tmux.keys("C-c", "C-c")
    await tmux.shows("0 stopped at train.py:")
    await tmux.prompts("[0]>")
    (user.folder / "go").touch()
    tmux.line("release all")
    await tmux.shows("exit code 0")
