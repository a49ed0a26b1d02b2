"""`dap-mux cast`, `compare` and `list` beside a debugger: observers with stable exit codes."""

from __future__ import annotations

import json

import pytest

from tests.real.driving import joined
from tests.support.clients.consoles import cells
from tests.support.clients.jobs import serving
from tests.support.processes.commands import LIMIT, User, line_of, listed
from tests.support.processes.run_command import COUNT

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


async def test_one_shots(user: User) -> None:
    path = user.script(COUNT)
    loss = line_of(path, "loss")
    # Who takes longer over a step is told as running, on a busy machine too.
    run = await serving(user, path, n=4, DAP_MUX_STEP_GRACE=str(LIMIT))
    done = await user.does("cast", "all", "p", "rank")
    words = "they wait for one before their first line"
    assert (done.code, words in done.err) == (1, True), "an observer starts nothing"

    editor = await joined(run, {path: [loss]}, name="editor")
    await listed(editor, "line", *[loss] * 4)

    patient = ("--timeout", str(LIMIT))
    done = await user.does("cast", "0-3", "p", "len(__name__) + number", *patient)
    assert (done.code, done.out) == (0, "{0-3}: 8\n")
    body = json.loads((await user.does("cast", "ranks(1:3)", "rank", "--json", *patient)).out)
    assert [(one["ranks"], one["value"]) for one in body["results"]] == [("1", "1"), ("2", "2")]
    assert {"errors", "missing"} <= set(body)
    done = await user.does("cast", "0-1", "p nowhere", *patient)
    assert done.code == 1
    assert "{0-1}: NameError: name 'nowhere' is not defined" in done.out
    assert (await user.does("cast", "9", "n")).code == 1

    done = await user.does("cast", "job ranks(3)", "n", "--timeout", str(2 * LIMIT))
    assert done.code == 0
    assert f"({loss + 1})step()" in done.out
    await listed(editor, "line", loss, loss, loss, loss + 1)

    done = await user.does("compare", "rank if rank < 3 else 1000", "--ranks", "0-3")
    assert done.code == 0
    assert cells(done.out)[0] == ["Ranks", "Value"]
    assert "min 0 · max 1000" in done.out
    body = json.loads((await user.does("compare", "rank // 4", "--json")).out)
    assert [(one["ranks"], one["value"]) for one in body["values"]] == [("0-3", "0")]
    assert {"statistics", "outliers", "missing"} <= set(body)

    assert len(cells((await user.does("list", "stopped & 0-1")).out)) == 3
    folded = cells((await user.does("list", "classes")).out)
    assert [row[1:3] for row in folded] == [["Ranks", "Count"], ["0-2", "3"], ["3", "1"]]

    entries = await listed(editor, "state", *["stopped"] * 4)
    assert entries, "nobody was disturbed"
    await editor.disconnect()
    assert (await run.ends()).code == 0
