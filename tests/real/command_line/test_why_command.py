"""`dap-mux why` on real ranks: one stays away, one holds Python's global lock, or all get on."""

from __future__ import annotations

import json
from typing import Any, Final

import anyio
import pytest

from tests.real.driving import joined
from tests.support.clients.jobs import serving
from tests.support.processes.commands import LIMIT, User, line_of
from tests.support.processes.run_command import start
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM: Final = """\
import ctypes, os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
port = int(os.environ["MASTER_PORT"])

def all_reduce():
    if rank == 0:
        for peer in peers:
            peer.recv(1)
        for peer in peers:
            peer.sendall(b"x")
    else:
        root.sendall(b"x")
        root.recv(1)

def load():
    if fault == "sleep":
        time.sleep(1e6)  # asleep
    if fault == "lock":
        ctypes.PyDLL(None).sleep(1000)

fault = sys.argv[1]
if rank == 0:
    with socket.create_server(("127.0.0.1", port)) as server:
        peers = [server.accept()[0] for _ in range(size - 1)]
while rank:
    try:
        root = socket.create_connection(("127.0.0.1", port))
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
while True:
    time.sleep(0.001)
    all_reduce()
    if rank == 2:
        load()
"""


async def verdict(user: User, wanted: str, *more: str) -> tuple[int | None, dict[str, Any]]:
    """Ask until it is this one: ranks take their time to get to where the fault is."""
    with anyio.fail_after(LIMIT):
        while True:
            done = await user.does("why", "--json", *more)
            if "no debugger is attached" in done.err:  # the editor's has yet to reach a rank
                continue
            body: dict[str, Any] = json.loads(done.out)
            if body["verdict"] == wanted:
                return done.code, body


@pytest.mark.parametrize(
    ("fault", "wanted", "code"),
    [
        ("sleep", "not-joined", 21),
        pytest.param("lock", "gil-held", 14, marks=pytest.mark.heavy),
    ],
)
async def test_the_culprit_is_named(user: User, fault: str, wanted: str, code: int) -> None:
    path = user.script(PROGRAM)
    run = await serving(user, path, fault, n=4)
    await joined(run, name="editor")
    exited, body = await verdict(user, wanted)
    assert exited == code
    assert body["suspects"][0]["ranks"] == "2"
    if fault == "sleep":
        place = body["suspects"][0]["stack"][0]
        assert (place["name"], place["line"]) == ("load", line_of(path, "asleep"))
        done = await user.does("why")
        assert done.out.startswith("not-joined: rank 2 stands at train.py:")
        assert "  it has not reached all_reduce\n" in done.out
        assert (await user.does("why", "nonsense:")).code == 2


async def test_a_healthy_job_and_one_that_nobody_debugs(user: User) -> None:
    """`why` looks from outside; it attaches when it is told to, and lets the ranks go again."""
    path = user.script(PROGRAM)
    await serving(user, "--no-wait", path, "none", n=4)
    code, body = await verdict(user, "healthy")
    assert (code, body["suspects"]) == (0, [])
    listed = json.loads((await user.does("list", "--json")).out)
    assert {each["state"] for each in listed["ranks"]} == {"waiting"}
    code, body = await verdict(user, "healthy", "--attach")
    assert (code, body["suspects"]) == (0, [])
    listed = json.loads((await user.does("list", "--json")).out)
    assert {each["state"] for each in listed["ranks"]} <= {"waiting", "running"}


async def test_ranks_before_their_first_line_are_not_judged(user: User) -> None:
    run = await start(user, user.script(PROGRAM), "none", n=2)
    await run.says("ranks wait for a debugger")
    with anyio.fail_after(LIMIT):
        while "pass --attach" not in (await user.does("why")).err:
            pass  # they have only begun to listen


async def test_a_job_that_nobody_watches_says_why_it_hangs(user: User) -> None:
    """Once, and the job is left as it is."""
    path = user.script(PROGRAM)
    run = await start(user, "--no-wait", "--why-after", "1", path, "sleep", n=4)
    await run.says("the job does not get on: not-joined: rank 2 stands at train.py:")
    await run.says("dap-mux why asks again")
    listed = json.loads((await user.does("list", "--json")).out)
    assert {each["state"] for each in listed["ranks"]} == {"waiting"}
    assert run.err.count("does not get on") == 1


async def test_a_culprit_that_nobody_debugs_is_seen_from_outside(user: User) -> None:
    """No debugger comes into any rank, and no rank is stopped.

    With `--watch` until there is nothing to look at any more; the exit code is the last verdict's.
    """
    run = await serving(user, "--no-wait", user.script(PROGRAM), "sleep", n=4)
    _, body = await verdict(user, "not-joined")
    assert body["suspects"][0]["ranks"] == "2"
    listed = json.loads((await user.does("list", "--json")).out)
    assert {each["state"] for each in listed["ranks"]} == {"waiting"}
    watch = await user.start("why", "--watch=1")
    await until(lambda: "not-joined: rank 2" in watch.out, within=LIMIT, what=watch.out)
    run.process.terminate()
    done = await watch.ends()
    assert (done.code, "no more to look at" in done.err) == (21, True), done
    refused = await user.does("why", "--watch=1", "--attach")
    assert (refused.code, "--watch: of a session" in refused.err) == (2, True), refused
