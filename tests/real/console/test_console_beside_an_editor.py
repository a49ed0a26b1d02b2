"""A console and an editor in one session: what one does, the other sees; neither ends the other."""

from __future__ import annotations

import os
import signal

import pytest

from dap_mux.client import DapClient
from dap_mux.session.job import entry_line
from tests.support.clients.consoles import PipedConsole, cells
from tests.support.clients.jobs import held, serving
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed
from tests.support.processes.run_command import COUNT, WAIT

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


def shown_at(editor: DapClient, thread: int) -> bool:
    """Whether a stop was shown there."""
    return any(body["threadId"] == thread for body in bodies(editor, "stopped"))


@pytest.mark.quick
async def test_what_one_does_the_other_sees(user: User) -> None:
    path = user.script(COUNT)
    loss, back = line_of(path, "loss"), line_of(path, "return")
    run, editor = await held(user, path, "loss", n=4)

    console = PipedConsole(await user.start("console", piped=True))
    rows = cells(await console.does("list"))
    assert [(row[0], row[1], row[4], row[5]) for row in rows[1:]] == [
        ("job", str(rank), "train.step", str(loss)) for rank in range(4)
    ]

    stop = await editor.wait_event("stopped", timeout=LIMIT)
    await editor.request("next", {"threadId": stop["threadId"]}, timeout=LIMIT)
    await console.sees(f"stopped at train.py:{back} step (step)")
    await listed(editor, "line", *[back] * 4)

    rank_2 = (await listed(editor, "line", *[back] * 4))[2]["threadId"]
    editor.events.clear()
    await console.does("focus 2")
    await editor.wait_for(lambda: shown_at(editor, rank_2), timeout=LIMIT, what="the editor at 2")

    assert "class" in await console.does("scope class")
    assert (await editor.request("scope", timeout=LIMIT))["value"] == "class"
    await console.does("scope auto")
    said = await console.does(f"b {back}, ranks(3):")
    assert f"1: train.py:{back} in step, if ranks(3):   (1 rank)" in said

    assert "every other" not in await console.does("list all")
    console.type("quit")
    assert "disconnected; other debuggers are still connected" in await console.sees(
        "disconnected;"
    )
    entries = await listed(editor, "state", *["stopped"] * 4)
    assert [entry["line"] for entry in entries] == [back] * 4, "nobody was resumed"

    again = PipedConsole(await user.start("console", piped=True))
    await again.does("list")
    await editor.disconnect()
    assert len(cells(await again.does("list"))) == 5, "the console holds the ranks"
    again.type("quit")
    assert "you were the last debugger" in await again.sees("last debugger")
    assert (await run.ends()).code == 0


async def test_attach_and_who_else_moves_the_rank(user: User) -> None:
    path = user.script(COUNT + WAIT)  # the session is not over before the editor has left
    loss = line_of(path, "loss")
    run, editor = await held(user, path, "loss", n=2)
    entries = await listed(editor, "state", "stopped", "stopped")
    console = PipedConsole(await user.start("console", "--words", "monarch", piped=True))

    said = await console.does("attach 1")
    assert f"> {path}({loss})step()" in said
    assert f"{loss} ->     loss = 10 * rank + number" in said

    await editor.request("setBreakpoints", {"source": {"path": path}, "breakpoints": []})
    thread = {"threadId": entries[1]["threadId"], "singleThread": True}
    await editor.request("continue", thread, timeout=LIMIT)
    said = await console.sees("Detached from debug session for rank 1")
    assert "rank 1 (127.0.0.1): running" in said
    assert "Only a stopped rank has a prompt" in await console.does("attach 1")

    console.type("continue")
    assert "all ranks are released and run on" in await console.sees("all ranks are released")
    await editor.disconnect()
    (user.folder / "go").touch()
    assert (await run.ends()).code == 0


async def test_a_console_ends_quietly_when_nobody_reads_it(user: User) -> None:
    await serving(user, user.script(COUNT), n=1)
    reading, writing = os.pipe()
    kept, typing = os.pipe()
    console = await user.start("console", sockets=(kept, writing))
    for end in (reading, writing):
        os.close(end)
    os.write(typing, b"help\n")
    done = await console.ends()
    for end in (kept, typing):
        os.close(end)
    assert (done.code, done.err) == (128 + signal.SIGPIPE, "")


async def test_a_signal_ends_the_console_and_not_the_job(user: User) -> None:
    run, editor = await held(user, user.script(COUNT), "loss", n=2)
    command = await user.start("console", piped=True)
    await PipedConsole(command).does("list")
    command.process.send_signal(signal.SIGINT)
    done = await command.ends()
    assert (done.code, done.err) == (130, "")
    await listed(editor, "state", "stopped", "stopped")
    await editor.disconnect()
    assert (await run.ends()).code == 0


async def test_a_console_in_another_terminal_has_the_job_from_its_first_line(user: User) -> None:
    """Ranks that have waited stop there, and run once the console says so."""
    path = user.script(COUNT)
    run = await serving(user, path, n=2)
    console = PipedConsole(await user.start("console", "--words", "monarch", piped=True))
    while "2 stopped" not in (said := await console.does("list")):
        await console.sees("stopped at")
    (first,) = entry_line((path,)).values()
    assert [row[5] for row in cells(said)[1:]] == [str(first)] * 2
    console.type("c")
    assert (await run.ends()).code == 0
