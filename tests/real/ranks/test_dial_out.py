"""Ranks that call the session: `run --dial`, and `DAP_MUX_DIAL` with `attach dial:N`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dap_mux.client import DapClient
from tests.real.driving import joined
from tests.support.processes import proc_net
from tests.support.processes.callers import callers, told_by
from tests.support.processes.commands import LIMIT, Command, Json, User, bodies, line_of, listed
from tests.support.processes.ranks import Rank
from tests.support.processes.run_command import COUNT, LAUNCH, log, resume
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]
RANKS = 4
RUNS_ON = 3.0  # s; docs/internals/guarantees.md
BEATS = """\
import sys
import time
from pathlib import Path

go = Path(sys.argv[1])
number = 0
while not go.exists():
    number += 1  # beat
    print("beat", number, flush=True)
    time.sleep(0.01)
print("end")
"""
CHILDREN = """\
import multiprocessing
import os
import subprocess
import sys


def child():
    os._exit(7)


if __name__ == "__main__":
    spawned = multiprocessing.get_context("spawn").Process(target=child)
    spawned.start()
    spawned.join()
    forked = multiprocessing.get_context("fork").Process(target=child)
    forked.start()
    forked.join()
    done = subprocess.run([sys.executable, "-c", "raise SystemExit(7)"])
    print("codes", spawned.exitcode, forked.exitcode, done.returncode, flush=True)
    raise SystemExit(0)  # end
"""


@pytest.mark.quick
async def test_a_job_whose_ranks_call(user: User) -> None:
    script = user.script(COUNT)
    run = await user.start("run", "--dial", "-n", str(RANKS), "--log-dir", "logs", script)
    here = [{"line": line_of(script, "loss"), "condition": "ranks(1,3): number == 1"}]
    client = await joined(run, {script: here})
    entries = await listed(client, "state", "exited", "stopped", "exited", "stopped")
    for entry in entries:
        owned = proc_net.listening(entry["pid"]) if entry["state"] == "stopped" else []
        assert not owned, f"{entry} listens"
    cast = {"ranks": "1,3", "command": "p loss if number > 1 else 10 * rank + number"}
    told = (await client.request("cast", patient(cast), timeout=2 * LIMIT))["results"]
    assert {one["ranks"]: one["value"] for one in told} == {"1": "11", "3": "31"}
    await client.request("cast", {"ranks": "1,3", "command": "n"}, timeout=LIMIT)
    back = line_of(script, "return")
    await listed(client, "line", None, back, None, back)

    await client.request("cast", {"ranks": "1,3", "command": "c"}, timeout=LIMIT)
    await client.wait_event("terminated", timeout=LIMIT)
    assert bodies(client, "exited") == [{"exitCode": 0}]
    await client.disconnect()
    done = await run.ends()
    assert done.code == 0
    for rank in range(RANKS):
        assert f"[{rank}] end {rank}\n" in done.out
        environ = json.loads(log(user, rank).partition("begin ")[2].partition("\n")[0])
        assert environ["RANK"] == str(rank)
    await user.nothing_is_left()


def patient(cast: Json) -> Json:
    """A slow rank is not a silent one."""
    return {**cast, "timeout": LIMIT}


class Scene:
    """`attach dial:4` and its four ranks, held at `beat` by one client."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.script = user.script(BEATS)
        self.go = user.folder / "go"

    async def begin(self) -> None:
        """Start all of it."""
        # A port that nobody's own connection gets while no session listens there.
        port = str(proc_net.free_ports(1))
        self.attach = await self.user.start("attach", f"dial:{RANKS}", "--dial-listen", port)
        self.told = await told_by(self.attach)
        ranks = range(RANKS)
        self.ranks = await callers(
            self.user, ranks, self.script, self.told, arguments=[str(self.go)]
        )
        self.client = await self.stopped(self.attach, "number == 3")

    async def stopped(self, attach: Command, condition: str) -> DapClient:
        """A client that has stopped all ranks."""
        client = await attach.client(all_answered=False)
        here = {self.script: [{"line": line_of(self.script, "beat"), "condition": condition}]}
        await client.handshake(LAUNCH, breakpoints=here, timeout=LIMIT)
        await listed(client, "state", *["stopped"] * RANKS)
        return client

    async def all_run_on(self, ranks: list[Rank] | None = None) -> None:
        """Without a debugger, within the time that is promised."""
        before = {rank.rank: rank.output.count("beat") for rank in self.ranks}

        def runs_on(rank: Rank) -> bool:
            return rank.output.count("beat") > before[rank.rank] + 2

        wanted = ranks or self.ranks
        await until(lambda: all(map(runs_on, wanted)), within=RUNS_ON, what="every rank runs on")

    async def end(self) -> None:
        """The job ends as it should."""
        self.go.touch()
        for rank in self.ranks:
            if rank.running:
                assert await rank.ended() == 0, rank.output


@pytest.fixture
async def scene(user: User) -> Scene:
    """Four ranks, stopped."""
    scene = Scene(user)
    await scene.begin()
    return scene


@pytest.mark.alone
async def test_ranks_of_others_call_leave_and_are_attached_again(scene: Scene) -> None:
    entries = await listed(scene.client, "rank", *range(RANKS))
    pids = [rank.process.pid for rank in scene.ranks]
    assert [entry["pid"] for entry in entries] == pids
    release = {"ranks": "1"}
    await scene.client.request("release", release, timeout=LIMIT)
    await scene.all_run_on([scene.ranks[1]])
    await scene.client.disconnect()
    await scene.all_run_on()

    client = await scene.stopped(scene.attach, "number > 10")
    cast = {"ranks": "all", "command": "p number > 10"}
    (told,) = (await client.request("cast", patient(cast), timeout=2 * LIMIT))["results"]
    assert (told["ranks"], told["value"]) == ("0-3", "True")
    await client.disconnect()
    await scene.end()
    done = await scene.attach.ends()
    assert done.code == 0
    assert "all 4 ranks have connected" in done.err
    left = {path.suffix for path in scene.user.sessions.iterdir()}
    assert ".token" not in left, left


@pytest.mark.alone
async def test_the_session_killed_lets_all_run_on_and_the_next_one_gets_them(scene: Scene) -> None:
    token = scene.user.folder / "token"
    token.write_text(Path(scene.told["DAP_MUX_DIAL_TOKEN_FILE"]).read_text())  # noqa: ASYNC240
    token.chmod(0o600)
    scene.attach.process.send_signal(signal.SIGKILL)
    await scene.all_run_on()
    await scene.attach.ends()  # and so does its port
    words = ["--dial-listen", scene.told["DAP_MUX_DIAL"], "--token-file", str(token)]
    again = await scene.user.start("attach", f"dial:{RANKS}", *words)
    client = await scene.stopped(again, "number > 10")
    await client.disconnect()
    await scene.end()
    assert (await again.ends()).code == 0


async def test_a_killed_rank_is_gone_and_the_others_notice_nothing(scene: Scene) -> None:
    scene.ranks[2].process.send_signal(signal.SIGKILL)
    await scene.ranks[2].ended()
    await listed(scene.client, "state", "stopped", "stopped", "exited", "stopped")
    # whichever stopped first has the focus; a thread beside it would step alone
    focused = await scene.client.request("focus", {"rank": 0}, timeout=LIMIT)
    step = {"threadId": focused["threadId"]}
    await scene.client.request("next", step, timeout=LIMIT)
    after = line_of(scene.script, "beat") + 1
    await listed(scene.client, "line", after, after, None, after)
    await scene.client.disconnect()
    await scene.end()
    assert (await scene.attach.ends()).code == 0


async def test_a_rank_that_comes_late_waits_for_its_breakpoints(scene: Scene) -> None:
    """And an elastic restart of rank 2 has its row again."""
    old = (await listed(scene.client, "rank", *range(RANKS)))[2]
    scene.ranks[2].process.send_signal(signal.SIGKILL)
    await scene.ranks[2].ended()
    # Known to be gone: `list` would show the old one as stopped until the session has seen that.
    await listed(scene.client, "state", "stopped", "stopped", "exited", "stopped")
    (new,) = await callers(scene.user, [2], scene.script, scene.told, arguments=[str(scene.go)])
    entries = await listed(scene.client, "state", *["stopped"] * RANKS)
    assert entries[2]["pid"] == new.process.pid != old["pid"]
    assert entries[2]["threadId"] == old["threadId"]
    asked = {"ranks": "2", "command": "p number"}
    (told,) = (await scene.client.request("cast", patient(asked), timeout=2 * LIMIT))["results"]
    assert told["value"] == "3", "it has not run past its breakpoint before that was there"
    await scene.client.disconnect()
    scene.ranks[2] = new
    await scene.end()


async def test_processes_without_a_number_and_with_another_ones(user: User) -> None:
    script, go = user.script(BEATS), user.folder / "go"
    attach = await user.start("attach", "dial:2", "--dial-listen", "0")
    told = {**await told_by(attach), "DAP_MUX_DIAL_TIMEOUT": str(LIMIT)}
    (first,) = await callers(user, [-1], script, told, arguments=[str(go)])
    client = await joined(attach)
    await listed(client, "state", "running", "waiting")
    brief = {**told, "DAP_MUX_DIAL_TIMEOUT": "10"}  # the session has to say no meanwhile
    (same,) = await callers(user, [0], script, brief, arguments=[str(go)])
    assert await same.ended() == 125
    assert (
        f"rank 0 of group job is connected already: process {first.process.pid} on " in same.output
    )
    (second,) = await callers(user, [-2], script, told, arguments=[str(go)])
    entries = await listed(client, "state", "running", "running")
    assert [entry["pid"] for entry in entries] == [first.process.pid, second.process.pid]
    # One that is left before its program has begun waits for the next debugger.
    both = (first, second)
    await until(
        lambda: all("beat" in rank.output for rank in both), within=LIMIT, what="both have begun"
    )
    await client.disconnect()
    go.touch()
    assert [await first.ended(), await second.ended()] == [0, 0]
    assert (await attach.ends()).code == 0


async def test_children_of_ranks_that_call_run_as_ever(user: User) -> None:
    script = user.script(CHILDREN)
    run = await user.start("run", "--dial", "-n", "1", "--log-dir", "logs", script)
    here = {script: [line_of(script, "end")]}
    client = await joined(run, here, attach={**LAUNCH, "subProcess": True})
    stop = await client.wait_event("stopped", timeout=LIMIT)
    assert "codes 7 7 7" in log(user, 0)
    await resume(client, stop["threadId"])
    await client.wait_event("terminated", timeout=LIMIT)
    await client.disconnect()
    assert (await run.ends()).code == 0


async def test_a_wrong_token_is_refused_by_either_side(user: User) -> None:
    attach = await user.start("attach", "dial:1", "--dial-listen", "0", "--log", "dial=info")
    told = await told_by(attach)
    wrong = user.folder / "wrong"
    wrong.write_text("x" * 43 + "\n")
    wrong.chmod(0o600)
    script = user.script("print('has run')\n")
    bad = {**told, "DAP_MUX_DIAL_TOKEN_FILE": str(wrong)}
    (rank,) = await callers(user, [0], script, bad)
    assert await rank.ended() == 125
    assert "the rank and the session have different tokens" in rank.output
    assert "has run" not in rank.output
    await attach.says("the rank and the session have different tokens")
    assert "x" * 43 not in attach.err + rank.output
    await nobody_has_called(attach)


async def nobody_has_called(attach: Command) -> None:
    """The session still waits for its rank."""
    client = await attach.client()
    about = {"clientID": "dap-mux", "adapterID": "debugpy"}
    await client.request("initialize", about, timeout=LIMIT)
    await client.request("attach", {"role": "observer"}, timeout=LIMIT)
    assert [entry["state"] for entry in await listed(client, "rank", 0)] == ["waiting"]


Deed = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _says_nothing_true(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    body = b'{"seq":1,"type":"response","request_seq":1,"success":true,"command":"dapMuxGreeting"}'
    writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


async def _speaks_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n")


@pytest.mark.parametrize("deed", [_says_nothing_true, _speaks_http], ids=["no-proof", "http"])
async def test_strangers_on_the_port_for_calls_learn_and_do_nothing(user: User, deed: Deed) -> None:
    attach = await user.start("attach", "dial:1", "--dial-listen", "0")
    told = await told_by(attach)
    host, _, port = told["DAP_MUX_DIAL"].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    await deed(reader, writer)
    rest = await asyncio.wait_for(reader.read(), LIMIT)  # it is hung up on
    token = Path(told["DAP_MUX_DIAL_TOKEN_FILE"]).read_text().strip()  # noqa: ASYNC240
    assert token.encode() not in rest
    writer.close()
    await nobody_has_called(attach)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["attach", "dial:1"], "without a token file"),
        (["attach", "dial:1", "--token-file", "token"], "is not encrypted"),
        (["run", "--dial"], "is not encrypted"),
    ],
    ids=["no-token", "not-encrypted", "launcher"],
)
async def test_calls_from_elsewhere_are_taken_only_where_it_is_said(
    user: User, words: list[str], why: str
) -> None:
    runs = words[0] == "run"
    launcher = ["--", sys.executable, user.script("")] if runs else []
    done = await user.does(*words, "--dial-listen", "0.0.0.0:0", *launcher)
    assert done.code == (125 if runs else 4)
    assert why in done.err


async def test_nobody_takes_the_call(user: User) -> None:
    """A rank says where it calls, and does not wait for ever."""
    port = proc_net.free_ports(1)
    told = {
        "DAP_MUX_DIAL": f"127.0.0.1:{port}",
        "DAP_MUX_DIAL_TOKEN": "x" * 43,
        "DAP_MUX_DIAL_TIMEOUT": "3",
    }
    (rank,) = await callers(user, [0], user.script("print('has run')\n"), told)
    assert await rank.ended() == 125
    assert f"connects to the debug session at 127.0.0.1:{port}" in rank.output
    assert "within 3 s: " in rank.output
    assert "refused" in rank.output
    assert "x" * 43 not in rank.output
    assert "Traceback" not in rank.output


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"DAP_MUX_DIAL": "nonsense"}, "DAP_MUX_DIAL='nonsense' is not HOST:PORT"),
        ({"DAP_MUX_DIAL": "127.0.0.1:1"}, "needs the session's token"),
        (
            {"DAP_MUX_DIAL": "127.0.0.1:1", "DAP_MUX_DIAL_TOKEN_FILE": "none"},
            "cannot read the token file none",
        ),
    ],
    ids=["address", "no-token", "no-file"],
)
async def test_variables_that_make_no_sense(
    user: User, variables: dict[str, str], why: str
) -> None:
    (rank,) = await callers(user, [0], user.script("print('has run')\n"), variables)
    assert await rank.ended() == 125
    assert why in rank.output
    assert "Traceback" not in rank.output
