"""Hints and hovers over real ranks: what an editor is shown of them, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from lsprotocol import types

from tests.support.clients.jobs import held
from tests.support.clients.lsp_client import editor
from tests.support.processes.commands import LIMIT, User, line_of, listed, user

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
TRAIN = """\
import os
import time


def evaluate(rank):
    note = "€ 𝄞"; parts = {"a": [rank, 7]}
    return parts  # inside


def train(rank):
    loss = float("nan") if rank == 2 else 1.5
    text = "``` \\x1b[31m" * 2
    for step in range(1_000_000):
        time.sleep(0.01)
        loss = loss + 0  # here
    evaluate(rank)


train(int(os.environ["RANK"]))
"""


async def test_hints_and_values_come_and_go_with_the_ranks(user: User) -> None:
    path = user.script(TRAIN)
    here = line_of(path, "here")
    async with editor(user) as shown:
        uri = shown.open(path)
        assert await shown.hints(uri) == {}, "no session is no trouble"
        assert await shown.hover_on(uri, path, here, "loss") is None

        run, client = await held(user, path, "here", n=4)
        await shown.until_hints(uri, {here: "● 0-3"})
        said = await shown.until_hover(uri, path, here, "loss")
        assert said == "```text\nloss\n  ⚠ {2}: nan\n  {0-1,3}: 1.5\n```"

        row = (await listed(client, "line", *[here] * 4))[1]["threadId"]
        await client.request("next", {"threadId": row, "singleThread": True}, timeout=LIMIT)
        await listed(client, "line", here, here - 2, here, here)
        await shown.until_hints(uri, {here - 2: "● 1", here: "● 0,2-3"})

        await client.disconnect(timeout=LIMIT)
        await shown.until_hints(uri, {})
        assert run.process.returncode is None, "the job runs on"
        assert await shown.hover_on(uri, path, here, "loss") is None
    run.process.terminate()


@pytest.mark.heavy
async def test_only_the_function_of_the_ranks_is_asked_and_nothing_is_called(user: User) -> None:
    path = user.script(TRAIN)
    here, inside = line_of(path, "here"), line_of(path, "inside")
    run, _ = await held(user, path, "here", n=2)
    async with editor(user) as shown:
        uri = shown.open(path)
        await shown.until_hints(uri, {here: "● 0-1"})
        said = await shown.until_hover(uri, path, here - 2, "step")
        assert said == "```text\nstep  {0-1}: 0\n```"
        assert await shown.hover_on(uri, path, inside, "parts") is None, "nobody stands there"
        assert await shown.hover_on(uri, path, here - 1, "sleep") is None, "what is called"
        assert await shown.hover_on(uri, path, here + 1, "(rank") is None, "a call"
        said = await shown.until_hover(uri, path, here - 3, "text")
        assert said.startswith("````text\n"), "a rank's text does not end the block"
        assert "\x1b" not in said
        shown.rewrite(uri, TRAIN + "\nbroken(\n")
        assert await shown.hover_on(uri, path, here, "loss") is None
        assert await shown.hints(uri) == {here: "● 0-1"}
    run.process.terminate()


async def test_a_rank_that_does_not_answer_holds_nobody_up(user: User) -> None:
    path = user.script(
        TRAIN.replace("    text = ", "    slow = Slow(rank)\n    text = ")
        + """
class Slow(int):
    def __repr__(self):
        while self and not os.path.exists("go"):
            time.sleep(0.01)
        return "seen"
"""
    )
    # the class has to be there before it is used
    lines = (user.folder / "train.py").read_text("utf-8").splitlines(keepends=True)
    call = lines.index('train(int(os.environ["RANK"]))\n')
    path = user.script("".join([*lines[:call], *lines[call + 1 :], "\n", lines[call]]))
    here = line_of(path, "here")
    run, _ = await held(user, path, "here", n=2)
    async with editor(user) as shown:
        uri = shown.open(path)
        await shown.until_hints(uri, {here: "● 0-1"})

        async def hints_overtake_a_hover() -> bool:
            slow = asyncio.create_task(shown.hover_on(uri, path, here - 4, "slow"))
            await asyncio.sleep(0)
            assert await shown.hints(uri) == {here: "● 0-1"}
            overtaken = not slow.done()
            await slow
            return overtaken

        with anyio.fail_after(LIMIT):  # typing does not wait for the rank
            while not await hints_overtake_a_hover():
                pass  # a busy machine took the second that a hover waits for ranks
        said = await shown.until_hover(uri, path, here - 4, "slow", silent="1")
        assert said == "```text\nslow  {0}: seen\nno response from 1\n```"
    (user.folder / "go").touch()
    run.process.terminate()


@pytest.mark.heavy
async def test_an_observer_neither_holds_ranks_nor_keeps_a_session(user: User) -> None:
    path = user.script(TRAIN.replace("1_000_000", "20"))
    here = line_of(path, "here")
    run, client = await held(user, path, "here", n=2)
    async with editor(user) as shown:
        uri = shown.open(path)
        await shown.until_hints(uri, {here: "● 0-1"})
        await client.disconnect(timeout=LIMIT)
        assert (await run.ends()).code == 0, "the ranks were let go, and the session has ended"
        await shown.until_hints(uri, {})


async def test_run_all_here_brings_the_others(user: User) -> None:
    path = user.script(TRAIN)
    here = line_of(path, "here")
    run, client = await held(user, path, "here", n=4)
    source = {"source": {"path": path}, "breakpoints": []}
    await client.request("setBreakpoints", source, timeout=LIMIT)
    async with editor(user) as shown:
        uri = shown.open(path)
        await shown.until_hints(uri, {here: "● 0-3"})
        assert await shown.lenses(uri) == {}, "there is nobody to bring"
        row = (await listed(client, "line", *[here] * 4))[1]["threadId"]
        await client.request("next", {"threadId": row, "singleThread": True}, timeout=LIMIT)
        await shown.until_hints(uri, {here - 2: "● 1", here: "● 0,2-3"})
        lenses = await shown.lenses(uri)
        assert {line: lens.title for line, lens in lenses.items()} == {
            here - 2: "Run all here",
            here: "Run all here",
        }
        await shown.execute(lenses[here - 2])
        await listed(client, "line", *[here - 2] * 4)
        await shown.until_hints(uri, {here - 2: "● 0-3"})
        await client.request("continue", {"threadId": row}, timeout=LIMIT)
        await listed(client, "state", *["running"] * 4)
        await shown.until_hints(uri, {})
    run.process.terminate()


@pytest.mark.heavy
async def test_options_and_settings_name_another_session(user: User) -> None:
    path = user.script(TRAIN)
    here = line_of(path, "here")
    first, _ = await held(user, path, "here", n=1)
    async with editor(user) as shown:
        uri = shown.open(path)
        await shown.until_hints(uri, {here: "● 0"})
        second, _ = await held(user, path, "here", n=2)
        for run, label in ((second, "● 0-1"), (first, "● 0")):
            shown.configure(session=f"localhost:{(await run.session())['port']}")
            await shown.until_hints(uri, {here: label})
        named = address(await first.session())
        for words, options, label in (
            ((), None, "● 0-1"),
            (("--session", named), None, "● 0"),
            ((), {"session": named}, "● 0"),
        ):
            async with editor(user, *words, options=options) as other:
                await other.until_hints(other.open(path), {here: label})
        shown.workspace_did_change_configuration(types.DidChangeConfigurationParams({}))
        first.process.terminate()
        await shown.until_hints(uri, {})
        shown.configure(session=None)
        await shown.until_hints(uri, {here: "● 0-1"})
    second.process.terminate()


def address(file: dict[str, Any]) -> str:
    """Where a session listens."""
    return f"{file['host']}:{file['port']}"


@pytest.mark.heavy
async def test_each_window_shows_the_session_of_its_own_debugger(user: User) -> None:
    """Two jobs of one file: what a window shows and moves is the job that is debugged there."""
    path = user.script(TRAIN)
    here = line_of(path, "here")
    first, client = await held(user, path, "here", n=2)
    async with editor(user, options={"session": "only"}) as shown:
        uri = shown.open(path)
        await shown.until_hints(uri, {here: "● 0-1"})
        second, other = await held(user, path, "here", n=3)
        await shown.until_hints(uri, {})  # of which of the two is not known

        for run, debugger, label in ((first, client, "● 0-1"), (second, other, "● 0-2")):
            told = await debugger.request("session", timeout=LIMIT)
            assert told == {"address": address(await run.session())}
            shown.configure(session=told["address"])
            await shown.until_hints(uri, {here: label})
        row = (await listed(other, "line", *[here] * 3))[1]["threadId"]
        await other.request("next", {"threadId": row, "singleThread": True}, timeout=LIMIT)
        await shown.until_hints(uri, {here - 2: "● 1", here: "● 0,2"})
        said = await shown.until_hover(uri, path, here, "loss")
        assert said.startswith("```text\nloss\n  ⚠ {2}: nan\n  {0-1}: 1.5\n")

        source = {"source": {"path": path}, "breakpoints": []}
        await other.request("setBreakpoints", source, timeout=LIMIT)
        await shown.execute((await shown.lenses(uri))[here - 2])
        await listed(other, "line", here - 2, here - 2, here - 2)
        await listed(client, "line", here, here)

        shown.configure(session="only")
        await shown.until_hints(uri, {})
        second.process.terminate()
        await second.ends()
        await shown.until_hints(uri, {here: "● 0-1"})
    first.process.terminate()


async def test_hints_stay_with_their_lines_while_the_text_is_edited(user: User) -> None:
    """Edits move the hints, saved or not: the ranks run the earlier text."""
    path = user.script(TRAIN)
    here = line_of(path, "here")
    run, client = await held(user, path, "here", n=2)
    row = (await listed(client, "line", here, here))[1]["threadId"]
    await client.request("next", {"threadId": row, "singleThread": True}, timeout=LIMIT)
    await listed(client, "line", here, here - 2)
    async with editor(user) as shown:
        uri = shown.open(path)
        await shown.until_hints(uri, {here - 2: "● 1", here: "● 0"})
        shown.insert(uri, 1, "import sys\nimport json\n")
        assert await shown.hints(uri) == {here: "● 1", here + 2: "● 0"}
        assert set(await shown.lenses(uri)) == {here, here + 2}
        edited = user.folder / "edited.py"
        edited.write_text("import sys\nimport json\n" + TRAIN, "utf-8")
        said = await shown.until_hover(uri, edited, here + 2, "loss")
        assert said == "```text\nloss  {0-1}: 1.5\n```"
        shown.insert(uri, here + 1, "        print(step)\n")
        assert await shown.hints(uri) == {here: "● 1", here + 3: "● 0"}
        shown.save(path, edited.read_text("utf-8"))
        assert await shown.hints(uri) == {here: "● 1", here + 3: "● 0"}, "they run what it was"
        shown.delete_lines(uri, here + 3, here + 3)
        assert await shown.hints(uri) == {here: "● 1"}, "the line is gone"
        shown.insert(uri, here + 3, "        loss = loss + 0  # here\n")
        assert await shown.hints(uri) == {here: "● 1", here + 3: "● 0"}, "it is back"
        shown.rewrite(uri, TRAIN)
        assert await shown.hints(uri) == {here - 2: "● 1", here: "● 0"}
        # *Run all here* means the line that the ranks have.
        source = {"source": {"path": path}, "breakpoints": []}
        await client.request("setBreakpoints", source, timeout=LIMIT)
        shown.insert(uri, 1, "import sys\n")
        await shown.execute((await shown.lenses(uri))[here - 1])
        await listed(client, "line", here - 2, here - 2)
        await shown.until_hints(uri, {here - 1: "● 0-1"})
    run.process.terminate()


@pytest.mark.heavy
async def test_ranks_that_are_started_again_run_what_was_saved(user: User) -> None:
    path = user.script(TRAIN)
    here = line_of(path, "here")
    run, client = await held(user, path, "here", n=2, launch=True)
    async with editor(user) as shown:
        uri = shown.open(path)
        await shown.until_hints(uri, {here: "● 0-1"})
        shown.insert(uri, 1, "import sys\n")
        shown.save(path, "import sys\n" + TRAIN)
        await shown.until_hints(uri, {here + 1: "● 0-1"})
        lines = {"source": {"path": path}, "breakpoints": [{"line": here + 1}]}
        await client.request("setBreakpoints", lines, timeout=LIMIT)
        await client.request("restart", timeout=LIMIT)
        await listed(client, "line", here + 1, here + 1)
        await shown.until_hints(uri, {here + 1: "● 0-1"})
        shown.insert(uri, 1, "\n")
        assert await shown.hints(uri) == {here + 2: "● 0-1"}
    run.process.terminate()
