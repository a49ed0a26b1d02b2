"""`dap-mux run -- LAUNCHER` as its users see it: the installed command and real ranks."""

from __future__ import annotations

import pytest

from tests.real.command_line.launched_job import (
    ATTACH,
    adapters,
    finish,
    go_on,
    launch,
    listening_or_calling,
)
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed
from tests.support.processes.launchers import LAUNCH

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]

TRAIN = """\
first = 1  # first
import os, sys

rank = int(os.environ["RANK"])
for step in range(3):
    loss = 10 * rank + step  # loss
ours = [entry for entry in sys.path if "dap_mux" in entry]
sys.stdout.write(f"end {rank} {sys.argv[1:]} {ours}\\n")  # in one go: the others write there, too
"""


@pytest.mark.quick
@listening_or_calling
async def test_ranks_of_a_launcher_from_the_first_line_to_the_exit_code(
    user: User, options: tuple[str, ...]
) -> None:
    script, launcher = user.script(TRAIN), user.script(LAUNCH, "launch.py")
    run = await launch(user, launcher, "4", script, "--epochs", "3", options=options)
    client = await run.client()
    mine = [{"line": line_of(script, "loss"), "condition": "ranks(1,3): step == 1"}]
    await client.handshake(
        ATTACH, breakpoints={script: [line_of(script, "first"), *mine]}, timeout=LIMIT
    )
    entries = await listed(client, "line", 1, 1, 1, 1)
    assert {entry["state"] for entry in entries} == {"stopped"}
    assert adapters(user) == 0
    await go_on(client, entries)
    entries = await listed(client, "state", "exited", "stopped", "exited", "stopped")
    frames = await go_on(client, entries)
    assert [frame["name"] for frame in frames] == ["<module>"]
    await finish(client)
    assert bodies(client, "exited") == [{"exitCode": 0}]
    done = await run.ends()
    assert done.code == 0
    lines = [f"end {rank} ['--epochs', '3'] []" for rank in range(4)]
    assert sorted(done.out.splitlines()) == ["a helper", *lines]
    await user.nothing_is_left()


@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137)],
    ids=["exit", "signal"],
)
async def test_the_launchers_exit_code_is_passed_on(user: User, end: str, code: int) -> None:
    script = user.script(f"import os, sys\nif os.environ['RANK'] == '1':\n    {end}\n")
    run = await launch(user, user.script(LAUNCH, "launch.py"), "2", script)
    client = await joined(run)
    await finish(client)
    assert bodies(client, "exited") == [{"exitCode": code}]
    assert (await run.ends()).code == code


async def test_a_launcher_that_dies_of_a_signal(user: User) -> None:
    script = user.script("import os\nos.kill(os.getpid(), 15)\n")
    done = await (await launch(user, script)).ends()
    assert (done.code, done.out) == (143, "")
    assert "none of its Python processes was a rank" in done.err


@listening_or_calling
async def test_a_rank_that_its_launcher_starts_again(user: User, options: tuple[str, ...]) -> None:
    text = "import os\nif os.environ['RANK'] == '1' and not os.path.exists('again'):\n"
    text += "    open('again', 'w').close()\n    os._exit(75)\nprint('here')  # here\n"
    script = user.script(text)
    run = await launch(user, user.script(LAUNCH, "launch.py"), "2", script, options=options)
    client = await joined(run, {script: [line_of(script, "here")]})
    entries = await listed(client, "line", 5, 5)
    assert [entry["state"] for entry in entries] == ["stopped", "stopped"]
    await go_on(client, entries)
    await finish(client)
    done = await run.ends()
    assert (done.code, done.out.count("here")) == (0, 2)
