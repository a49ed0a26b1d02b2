"""`dap-mux stacks` on ranks that compute, wait in C, sleep and stand; it pauses none of them."""

from __future__ import annotations

import json
import signal
from typing import Any, Final

import anyio
import pytest

from dap_mux.client import DapClient
from tests.real.driving import joined
from tests.support.clients.jobs import serving
from tests.support.processes.commands import LIMIT, Command, User, line_of, listed
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM: Final = """\
import os, socket, threading, time
rank = int(os.environ["RANK"])
ours, theirs = socket.socketpair()
count = 0
done = threading.Event()

def wait_for_others():
    ours.recv(1)  # blocked

def compute():
    global count
    while not done.is_set():
        count += 1

def load(path):
    done.wait()  # asleep

def step():
    if rank == 1:
        compute()
    elif rank == 2:
        load("shard-2")
    else:
        wait_for_others()

threading.Thread(target=load, args=("next",), name=f"loader-{rank}", daemon=True).start()
step()
"""
PLACES: Final = {"0,3": "wait_for_others", "1": "compute", "2": "load"}


async def tree(user: User, *words: str) -> dict[str, Any]:
    done = await user.does("stacks", "--json", *words)
    body: dict[str, Any] = json.loads(done.out)
    return body


def places(body: dict[str, Any]) -> dict[str, str]:
    """The ranks of each innermost branch of the main thread, and its last frame of the program."""
    found: dict[str, str] = {}

    def look(branch: dict[str, Any]) -> None:
        own = [frame["name"] for frame in branch["frames"] if not frame["library"]]
        if branch["ends"]:
            found[branch["ends"]] = own[-1]
        for inner in branch["branches"]:
            look(inner)

    for thread in body["threads"]:
        if thread["name"] == "MainThread":
            for branch in thread["branches"]:
                look(branch)
    return found


async def count_of(user: User) -> int:
    done = await user.does("cast", "1", "p count", "--timeout", str(LIMIT))
    return int(done.out.rpartition(" ")[2])


async def in_place(user: User, run: Command) -> None:
    with anyio.fail_after(LIMIT):
        while places(await tree(user)) != PLACES:
            assert run.process.returncode is None


@pytest.mark.heavy
async def test_where_all_ranks_are(user: User) -> None:
    path = user.script(PROGRAM)
    run = await serving(user, path, n=4)
    done = await user.does("stacks")
    assert (done.code, done.out) == (1, "{0-3}: is waiting\n"), "an observer starts nothing"
    editor = await joined(run, name="editor")
    await in_place(user, run)

    before = await count_of(user)
    done = await user.does("stacks")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "{0-3}"
    assert f"    wait_for_others  train.py:{line_of(path, 'blocked')}" in lines
    assert "  {0,3}" in lines
    assert await count_of(user) > before, "rank 1 has counted on"
    assert {row["state"] for row in await listed(editor, "state", *["running"] * 4)} == {"running"}

    threads = (await tree(user, "--threads", "all", "0-3"))["threads"]
    assert [(one["name"], one["ranks"]) for one in threads][:1] == [("MainThread", "0-3")]
    (loader,) = (one for one in threads if one["name"] == "loader-#")
    assert loader["ranks"] == "0-3"
    assert not [
        one["name"] for one in threads if "pydev" in one["name"] or "dap-mux" in one["name"]
    ]

    done = await user.does("stacks", "1,2", "--library")
    assert done.out.splitlines()[0] == "{1-2}"
    done = await user.does("stacks", "9")
    assert (done.code, "9" in done.err) == (1, True), done.err

    rows = await listed(editor, "state", *["running"] * 4)
    await editor.request("pause", {"threadId": rows[1]["threadId"], "singleThread": True})
    await listed(editor, "state", "running", "stopped", "running", "running")
    body = await tree(user)
    assert places(body) == PLACES, "the debugger's own frames are not in it"
    assert "└ stopped" in (await user.does("stacks", "1")).out
    await watched(user, editor, rows[3]["threadId"])


async def watched(user: User, editor: DapClient, rank_3: int) -> None:
    """With `--watch` the tree is shown again when it has changed."""
    watch = await user.start("stacks", "0,2-3", "--watch", "--json")
    await until(lambda: watch.out.count("\n") == 1, within=LIMIT, what="a tree")
    (first,) = map(json.loads, watch.out.splitlines())
    assert places(first) == {"0,3": "wait_for_others", "2": "load"}
    await editor.request("pause", {"threadId": rank_3, "singleThread": True})
    # Rank 3 waits in C, and its pause comes true with what it waits for.
    await editor.request("cast", {"ranks": "3", "command": "p theirs.send(b'x')"}, timeout=LIMIT)
    await until(lambda: watch.out.count("\n") > 1, within=LIMIT, what="another tree")
    second = json.loads(watch.out.splitlines()[-1])
    assert second != first
    watch.process.send_signal(signal.SIGINT)
    assert (await watch.ends()).code == 0
    shown = await user.start("stacks", "2", "--watch")
    await until(lambda: "load  train.py" in shown.out, within=LIMIT, what="a tree as text")
    shown.process.send_signal(signal.SIGINT)
    assert (await shown.ends()).code == 0


WITH_TASKS: Final = """\
import asyncio, os
async def fetch(shard):
    await asyncio.sleep(1e6 + shard)
async def serve():
    if os.environ["RANK"] == "0":
        await asyncio.sleep(1e6)
    await asyncio.gather(*(fetch(each) for each in range(3)))
asyncio.run(serve())
"""


async def test_asyncio_tasks_are_one_tree_of_all_ranks(user: User) -> None:
    run = await serving(user, user.script(WITH_TASKS), n=3)
    await joined(run, name="editor")
    found: dict[str, list[str]] = {}
    with anyio.fail_after(LIMIT):
        while [*found] != ["1-2", "0"]:
            threads = (await tree(user))["threads"]
            tasks = [one for one in threads if one["name"] == "MainThread, asyncio tasks"]
            found = {
                branch["ranks"]: [frame["name"] for frame in branch["frames"]]
                for one in tasks
                for branch in one["branches"]
            }
    assert found["1-2"][:2] == ["serve", "fetch"], "the tasks that `gather` waits for"
    assert found["0"][:2] == ["serve", "sleep"]
    assert "MainThread, asyncio tasks:" in (await user.does("stacks")).out
