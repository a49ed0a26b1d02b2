"""`dap-mux run --console -- LAUNCHER`: the terminal is the console's."""

from __future__ import annotations

import sys

import pytest

from tests.support.processes.commands import User
from tests.support.processes.launchers import LAUNCH
from tests.support.processes.proc_net import free_ports
from tests.support.processes.tmux import LIMIT, Tmux
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(120)]


async def test_ranks_stop_at_the_first_line_of_the_launched_script(tmux: Tmux, user: User) -> None:
    text = "import sys\nsys.stdout.write('this is ' + os.environ['RANK'] + '\\n')\n"
    user.script('"""A docstring."""\nimport os\n' + text)
    user.script(LAUNCH, "launch.py")
    ours = [sys.executable, "-m", "dap_mux", "run", "--console", "--log-dir", "logs"]
    ports = ["--base-port", str(free_ports(4))]
    theirs = [sys.executable, "-m", "launch", "2", "train.py"]
    tmux.start([*ours, *ports, "--", *theirs], user.folder, user.environ)
    await tmux.shows(": 2 stopped")
    tmux.line("list")
    screen = await tmux.shows("2 stopped", times=2)
    assert screen.count("train.<module>") == 2
    tmux.line("cast all c")
    await tmux.shows("this is 0")
    await tmux.shows("this is 1")
    log = user.folder / "logs" / "launcher.log"
    said = ["a helper", "this is 0", "this is 1"]  # to the debugger, and then to the log

    def all_is_there() -> bool:
        return sorted(log.read_text("utf-8").splitlines()) == said

    await until(all_is_there, within=LIMIT, what="the log of both")
