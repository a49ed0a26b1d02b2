"""`dap-mux attach` over ranks that somebody else has started, and `list` beside it."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from dap_mux.pure.rank_sets import STATES
from tests.real.driving import StartRanks, joined
from tests.support.clients.consoles import cells
from tests.support.processes.commands import (
    LIMIT,
    Command,
    User,
    bodies,
    line_of,
    listed,
    quiet,
    threads,
)
from tests.support.processes.proc_net import free_ports
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until

pytestmark = pytest.mark.real
ATTACH = {"justMyCode": True}
RUNS_ON = 3.0  # s; docs/internals/guarantees.md

LOOP = """\
import os
import sys
import time
from pathlib import Path

go = Path(sys.argv[1])
number = 0


def step():
    global number
    number += 1  # step
    print("step", number, flush=True)
    time.sleep(0.01)


while not go.exists():
    step()
print("end")
"""
KEYS = {
    "rank", "group", "coords", "host", "pid", "endpoint", "state", "reason", "thread", "function",
    "module", "path", "line", "threadId", "exitCode", "worker",
}  # fmt: skip


class Job:
    """Ranks that loop until they are told to end."""

    def __init__(self, user: User, start_ranks: StartRanks) -> None:
        self.script = user.script(LOOP)
        self.line = line_of(self.script, "step")
        self._go = user.folder / "go"
        self._start = start_ranks

    async def start(self, n: int, **how: Any) -> list[Rank]:
        """Start `n` ranks."""
        return await self._start(n, self.script, arguments=[str(self._go)], **how)

    def breakpoint(self, condition: str = "") -> dict[str, list[dict[str, Any]]]:
        """A breakpoint in the loop, as a handshake takes it."""
        return {self.script: [{"line": self.line, "condition": condition}]}

    async def finish(self, ranks: list[Rank]) -> None:
        """Let them run to their own end."""
        self._go.touch()
        for rank in ranks:
            assert await rank.ended() == 0, rank.output
            assert "end" in rank.output


@pytest.fixture
def job(user: User, start_ranks: StartRanks) -> Job:
    return Job(user, start_ranks)


async def gone(attach: Command) -> None:
    """The command has ended by itself, because nothing is left to serve."""
    done = await attach.ends()
    assert (done.code, done.out) == (0, "")
    assert "all ranks are gone" in done.err
    assert not attach.session_path.exists()


@pytest.mark.heavy
async def test_a_mesh_of_four_ranks_and_the_one_shots_beside_it(user: User, job: Job) -> None:
    ranks = await job.start(4)
    first, last = ranks[0].port, ranks[3].port
    attach = await user.start("attach", f"127.0.0.1:{first}-{last}", "--mesh", "dp=2,tp=2")
    client = await joined(attach, job.breakpoint("ranks(tp=0): number == 1"))
    stop = await client.wait_event("stopped", timeout=LIMIT)
    await listed(client, "state", "stopped", "running", "stopped", "running")
    # A stop that is known may not be known whole yet.
    await listed(client, "line", job.line, None, job.line, None)
    await listed(client, "thread", "MainThread", None, "MainThread", None)
    names = [f"rank {n} · dp={n // 2} tp={n % 2}" for n in range(4)]
    assert list(await threads(client, 4)) == names

    shown = await user.does("list", "--json")
    assert (shown.code, shown.err) == (0, "")
    body = json.loads(shown.out)
    assert body["counts"] == {state: 2 * (state in ("running", "stopped")) for state in STATES}
    assert [set(entry) for entry in body["ranks"]] == [KEYS] * 4
    at_stop = {"group": "job", "rank": 2, "coords": {"dp": 1, "tp": 0}, "host": "127.0.0.1",
               "endpoint": f"127.0.0.1:{first + 2}", "state": "stopped", "reason": "breakpoint",
               "thread": "MainThread", "function": "step", "module": "train", "path": job.script,
               "line": job.line, "exitCode": None}  # fmt: skip
    assert at_stop.items() <= body["ranks"][2].items()
    assert [body["ranks"][1][key] for key in ("state", "line", "path")] == ["running", None, None]
    ids = [entry["threadId"] for entry in body["ranks"]]
    assert ids == list((await threads(client, 4)).values())

    lines = (await user.does("list")).out.splitlines()
    table = cells("\n".join(lines))
    assert table[0][1:4] == ["Rank", "Coords", "Hostname"]
    assert table[3] == [
        *("job", "2", "{'dp': 1, 'tp': 0}", "127.0.0.1", "train.step", str(job.line)),
        *("stopped", "breakpoint"),
    ]
    assert lines[-1] == "4 ranks: 2 running, 2 stopped"
    some = json.loads((await user.does("list", "stopped & ranks(dp=1)", "--json")).out)
    assert [entry["rank"] for entry in some["ranks"]] == [2]
    wrong = await user.does("list", "ranks(ep=1)")
    assert wrong.code == 1
    assert "ep" in wrong.err

    await client.request("setBreakpoints", {"source": {"path": job.script}, "breakpoints": []})
    await client.request("continue", {"threadId": stop["threadId"]}, timeout=LIMIT)
    await job.finish(ranks)
    await client.wait_event("terminated", timeout=LIMIT)
    assert bodies(client, "exited") == []  # nobody has seen how they ended
    await client.disconnect()
    await gone(attach)


async def test_ranks_that_come_later_get_their_breakpoints(user: User, job: Job) -> None:
    base = free_ports(2)
    attach = await user.start("attach", f"localhost:{base}+2", "-v")
    client = await joined(attach, job.breakpoint("number == 1"))
    await listed(client, "state", "waiting", "waiting")
    yet = [f"nothing listens on localhost:{port} yet" for port in (base, base + 1)]
    await listed(client, "reason", *yet)
    assert (await client.request("threads"))["threads"] == []
    ranks = await job.start(2, base_port=base)
    await listed(client, "line", job.line, job.line)
    await client.disconnect()
    await job.finish(ranks)
    attach.process.send_signal(signal.SIGTERM)
    assert (await attach.ends()).code == 0


async def test_a_ranks_file_with_two_groups_and_their_places(user: User, job: Job) -> None:
    ranks = await job.start(3)
    endpoints = [{"host": "127.0.0.1", "port": rank.port} for rank in ranks]
    places = [
        {"group": "trainer", "rank": 0, "coords": {"tp": 0}, "pid": ranks[0].pid},
        {"group": "trainer", "rank": 1, "coords": {"tp": 1}, "pid": ranks[1].pid},
        {"group": "eval", "rank": 0},
    ]
    entries = [{**endpoint, **place} for endpoint, place in zip(endpoints, places, strict=True)]
    (user.folder / "ranks.json").write_text(json.dumps(entries))
    attach = await user.start("attach", "@ranks.json")
    assert (await attach.session())["groups"] == ["eval", "trainer"]
    at_one = job.breakpoint("trainer.ranks(tp=1): number == 1")
    client = await joined(attach, at_one)
    entries = await listed(client, "state", "running", "running", "stopped")
    assert [(one["group"], one["rank"]) for one in entries] == [
        ("eval", 0), ("trainer", 0), ("trainer", 1)
    ]  # fmt: skip
    assert [entry["coords"] for entry in entries] == [None, {"tp": 0}, {"tp": 1}]
    assert [entry["pid"] for entry in entries] == [None, ranks[0].pid, ranks[1].pid]
    assert list(await threads(client, 3)) == [
        "rank 0 @eval", "rank 0 @trainer · tp=0", "rank 1 @trainer · tp=1"
    ]  # fmt: skip
    table = cells((await user.does("list", "trainer:0-1")).out)
    head = ["trainer", "0", "{'tp': 0}"], ["trainer", "1", "{'tp': 1}"]
    assert [row[:3] for row in table] == [["Actor Name", "Rank", "Coords"], *head]
    await client.disconnect()
    await job.finish(ranks)
    attach.process.send_signal(signal.SIGTERM)
    assert (await attach.ends()).code == 0


@pytest.mark.heavy
@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_whatever_ends_it_every_rank_runs_on_and_can_be_attached_again(
    user: User, job: Job, number: signal.Signals
) -> None:
    """Within 3 s, and a session that gets SIGTERM exits with 0 in that time, too."""
    ranks = await job.start(4)
    killed = number == signal.SIGKILL
    words = ["attach", f"127.0.0.1:{ranks[0].port}+4"]
    attach = await user.start(*words)
    client = await attach.client("first", all_answered=not killed)
    first = job.breakpoint("number == 1")
    await client.handshake(ATTACH, breakpoints=first, timeout=LIMIT)
    await listed(client, "state", *["stopped"] * 4)
    await quiet(client, first)
    attach.process.send_signal(number)
    run_on = lambda: all("step 5" in rank.output for rank in ranks)  # noqa: E731
    done, _ = await asyncio.gather(
        attach.ends(within=RUNS_ON), until(run_on, within=RUNS_ON, what="every rank runs on")
    )
    assert done.code == (-number if killed else 0)
    if not killed:
        assert f"{number.name}: releasing every rank" in done.err
        assert not attach.session_path.exists()
        await client.wait_event("terminated", timeout=LIMIT)

    again = await user.start(*words)
    client = await joined(again, job.breakpoint("number > 1"), name="second")
    await listed(client, "state", *["stopped"] * 4)
    await client.disconnect()
    await job.finish(ranks)
    assert again.process.returncode is None, "it waits for the next client"


async def test_it_ends_with_the_last_rank_although_no_client_is_there(user: User, job: Job) -> None:
    ranks = await job.start(2, wait=False)
    attach = await user.start("attach", f":{ranks[0].port}", f"127.0.0.1:{ranks[1].port}")
    client = await joined(attach)
    await threads(client, 2)
    ranks[1].kill()
    await listed(client, "state", "running", "exited")
    await job.finish(ranks[:1])
    await client.wait_event("terminated", timeout=LIMIT)
    await client.close()
    await gone(attach)


async def test_a_cluster_that_takes_long_to_answer_is_named(user: User) -> None:
    """Before there is a session; who waits would see nothing for up to half a minute."""
    python = Path(user.script("#!/bin/sh\nexec sleep 600\n", "python"))
    python.chmod(0o755)  # noqa: ASYNC240
    attach = await user.start("attach", "--python", str(python), "dask:tcp://127.0.0.1:1")
    await attach.says("asking for the ranks of dask:tcp://127.0.0.1:1")
