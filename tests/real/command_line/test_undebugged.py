"""Ranks that no debugger is attached to: those that run, and those that wait for one."""

from __future__ import annotations

import pytest

from tests.real.command_line.test_attach_command import LOOP
from tests.real.driving import StartRanks
from tests.support.clients.consoles import PipedConsole
from tests.support.clients.jobs import serving
from tests.support.processes.commands import LIMIT, User, line_of
from tests.support.processes.run_command import WAIT, log
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

RUNS = f"import os\n\nrank = int(os.environ['RANK'])\nprint('begin', flush=True)\n{WAIT}"


@pytest.mark.slow
async def test_ranks_that_run_without_a_debugger(user: User) -> None:
    run = await serving(user, "--no-wait", user.script(RUNS), n=2)
    await until(lambda: all("begin" in log(user, rank) for rank in range(2)), within=LIMIT, what="")
    listed = (await user.does("list")).out
    assert listed.count("| running | no debugger |") == 2, listed
    assert "2 ranks: 2 running" in listed
    seen = await user.does("stacks")
    assert (seen.code, "<module>  train.py:" in seen.out) == (0, True), seen.out
    cast = await user.does("cast", "all", "p", "rank + 40")
    assert (cast.code, cast.out) == (0, "{0}: 40 | {1}: 41\n"), cast.err
    compared = await user.does("compare", "rank")
    assert (compared.code, "min 0 · max 1" in compared.out) == (0, True), compared.err
    (user.folder / "go").touch()
    assert (await run.ends()).code == 0, "no rank was held"


@pytest.mark.slow
async def test_ranks_that_wait_for_one(user: User) -> None:
    """They are left as they are; and after 10 s the user hears of the console."""
    run = await serving(user, user.script(RUNS), n=2)
    await run.says("or type: dap-mux console")
    listed = (await user.does("list")).out
    assert listed.count("| waiting | before its first line |") == 2, listed
    for words in (("cast", "all", "p", "rank"), ("compare", "rank")):
        done = await user.does(*words)
        assert done.code == 1
        assert "they wait for one before their first line" in done.err
    assert "begin" not in log(user, 0) + log(user, 1)


async def test_a_console_of_attach(user: User, start_ranks: StartRanks) -> None:
    """Its session ends with it, and the ranks run on."""
    path = user.script(LOOP)
    ranks = await start_ranks(2, path, arguments=[str(user.folder / "go")])
    endpoints = [f"127.0.0.1:{rank.port}" for rank in ranks]
    attach = await user.start("attach", "--console", *endpoints, piped=True)
    console = PipedConsole(attach)
    await console.does("wait all running")
    said = await console.does(f"on 1 b {path}:{line_of(path, 'step')}")
    await console.sees("1 stopped at train.py:")
    assert "error" not in said
    assert (await console.does("on 1 p number >= 0")).endswith("True\n")
    console.type("quit")
    assert (await attach.ends()).code == 0
    assert "all ranks are released and run on" in await console.sees("you were the last debugger")
    (user.folder / "go").touch()
    for rank in ranks:
        assert await rank.ended() == 0, rank.output
