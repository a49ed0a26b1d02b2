"""A step that does not end: how the prompt comes back, and what is typed meanwhile."""

from __future__ import annotations

import pytest

from tests.real.console.test_console_terminal import ready, run
from tests.support.clients.jobs import held
from tests.support.processes.commands import User, line_of
from tests.support.processes.netcat import Netcat, served
from tests.support.processes.tmux import Tmux

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

WAITS = """\
import os
import time
from pathlib import Path

rank = int(os.environ["RANK"])


def wait():
    while not Path("go").exists():
        time.sleep(0.01)


wait()  # wait
print("end", rank)
"""


@pytest.mark.slow
async def test_typing_outlasts_ctrl_c(tmux: Tmux, user: User) -> None:
    """What was typed while a step blocked stands at the prompt that Ctrl-C brings back."""
    script = user.script(WAITS)
    run(tmux, user, 2, script)
    await ready(tmux, "2 stopped")
    tmux.line(f"b {line_of(script, 'wait')}")
    await tmux.shows("1: train.py:")
    await ready(tmux, "2 stopped")
    tmux.line("cast all c")
    await tmux.shows(f"stopped at train.py:{line_of(script, 'wait')}")
    await ready(tmux, "2 stopped")
    tmux.line("attach 0")
    await ready(tmux, "2 stopped", "(Pdb 0)")
    tmux.line("n")
    await tmux.shows("rank 0 still runs; Ctrl-C brings the prompt back, and changes nothing there")
    tmux.keys("40 + 2")
    await tmux.shows("40 + 2")
    tmux.keys("C-c")
    await tmux.shows("interrupted; ranks are not affected")
    await tmux.shows("dap-mux> 40 + 2")  # the prompt on the rank closes, because it runs
    (user.folder / "go").touch()


@pytest.mark.heavy
async def test_an_empty_line_brings_the_prompt_back_over_a_connection(user: User) -> None:
    run, editor = await held(user, user.script(WAITS), "wait", n=2)
    command, port = await served(user)

    one = await Netcat.connect(port)
    await one.does("attach 0", b"(Pdb 0) ")
    one.types("n")
    one.types("")  # before the user is told, it is one of those that are typed ahead
    one.types("%scope rank")
    await one.until(b"rank 0 still runs; an empty line brings the prompt back, and")
    one.types("%view classes")
    one.types("")
    said = await one.until(b"classes")
    assert "interrupted; ranks are not affected" in said
    assert "scope: rank" in said, "lines that were typed ahead are done in their order"
    (user.folder / "go").touch()
    one.types("%quit")
    await one.rest()
    await one.close()
    await editor.disconnect()
    assert (await run.ends()).code == 0
    assert (await command.ends()).code == 0
