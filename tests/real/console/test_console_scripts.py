"""Scripts for the console: their errors and exit codes, files of lines, and a dumb terminal."""

from __future__ import annotations

import pytest

from tests.real.console.test_console_terminal import COMMAND
from tests.support.clients.jobs import held
from tests.support.processes.commands import LIMIT, Command, User
from tests.support.processes.run_command import COUNT, run_words
from tests.support.processes.tmux import Tmux
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


async def script(user: User, *lines: str, words: tuple[str, ...] = ()) -> Command:
    """A console that has read these lines from a pipe."""
    command = await user.start("console", *words, piped=True)
    stdin = command.process.stdin
    assert stdin is not None
    stdin.write("".join(f"{line}\n" for line in lines).encode())
    stdin.close()
    return command


async def test_errors_of_a_script(user: User) -> None:
    run, editor = await held(user, user.script(COUNT), "loss", n=2)

    good = await script(user, "number", "on 1 rank")
    out = await good.process.stdout.read() if good.process.stdout else b""
    assert (await good.ends()).code == 0
    assert b"{0-1}: 0\n1\n" in out
    assert good.err == ""

    for line, problem in (
        ("watch number", "SyntaxError"),
        ("no_such_name", "NameError: name 'no_such_name' is not defined"),
        ("on 7 number", "no rank 7 in group job: it has 0-1"),
        ("wait all running 1", "wait all running: timed out after 1 s: ranks 0-1 stopped"),
        ("cl 9", "this console has no breakpoint '9'"),
        ("source ./nowhere", "No such file"),
    ):
        bad = await script(user, line, "40 + 2")
        out = await bad.process.stdout.read() if bad.process.stdout else b""
        assert (await bad.ends()).code == 1, line
        assert problem in bad.err
        assert problem.encode() not in out
        assert b"{0-1}: 42\n" in out, "a script goes on"
    await editor.disconnect()
    assert (await run.ends()).code == 0


async def test_files_of_lines(user: User) -> None:
    run, editor = await held(user, user.script(COUNT), "loss", n=2)
    user.script("# a comment\n\non 1\nrank + 40\non -\n", "lines")
    user.script("source again\n", "again")

    command = await script(user, "source lines", "source step", words=("-x", "lines"))
    out = await command.process.stdout.read() if command.process.stdout else b""
    assert (await command.ends()).code == 0, command.err
    assert out.count(b"\n41\n") == 2
    assert b"def step(number):" in out, "pdb's `source`, where there is no such file"

    command = await script(user, "source again")
    assert (await command.ends()).code == 1
    assert "files run one another already" in command.err
    await editor.disconnect()
    assert (await run.ends()).code == 0


@pytest.mark.slow
async def test_a_dumb_terminal_has_a_prompt(tmux: Tmux, user: User) -> None:
    words = run_words("--console", user.script(COUNT), n=2)
    tmux.start(["env", "TERM=dumb", COMMAND, *words], user.folder, user.environ)
    await tmux.prompts("[0-1]>")
    tmux.keys("half a line", "C-c")
    await tmux.shows("^C[0-1]>")
    tmux.line("40 + 2")
    await tmux.shows("{0-1}: 42")
    await tmux.prompts("[0-1]>")
    tmux.line("open('asked', 'w').close() or __import__('time').sleep(1000)")
    asked = user.folder / "asked"
    await until(asked.exists, within=LIMIT, what="the command is under way")
    tmux.line("b")
    await tmux.shows("\nb\n")
    tmux.keys("C-c")
    await tmux.shows("interrupted; ranks are not affected")
    tmux.line("help quit")
    await tmux.shows("quit: leave;")
    assert "(2 ranks)" not in tmux.history(), "what was typed ahead is dropped"
    tmux.keys("C-d")
    await tmux.shows("you were the last debugger: all ranks are released and run on")
