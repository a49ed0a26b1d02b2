"""Dask: the workers of a real cluster as ranks, by the commands of docs/dask.md."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator

import pytest

from dap_mux.client import DapClient
from tests.launchers.dask_scene import (
    PROGRAM,
    RESULT,
    WORKERS,
    DaskCluster,
    dask_cluster,
    line,
)
from tests.launchers.launching import ROOT, STARTS, cast, control, launch, seen
from tests.launchers.named_ranks import being, first_stop
from tests.launchers.pages import ours, typed
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, Command, Json, User, bodies, listed
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(300)
PAGE = (ROOT / "docs/dask.md").read_text("utf-8")
MEAN = line("mean = sum(present)")
NOTHING = {"plugins": [], "worker_plugins": [], "checks_silence": True, "listening": 0}
TTL_S = 8


@pytest.fixture
async def cluster(user: User) -> AsyncIterator[DaskCluster]:
    """A cluster whose scheduler gives up on workers that are silent for some seconds."""
    config = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{TTL_S} seconds"}
    async with dask_cluster(user, (), **config) as running:
        yield running


async def attached(
    user: User, cluster: DaskCluster, *breakpoints: Json, **attributes: bool
) -> tuple[Command, DapClient]:
    """Attach to the cluster; wait until the session is connected to all of it."""
    await cluster.has_workers()  # they are numbered in the order in which they come
    words = ours(typed("dask.md", 0)[1], "dask:tcp://HOST:8786", f"dask:{cluster.address}")
    run = await user.start(*words, "--python", str(cluster.python))
    attributes = {"justMyCode": True} | attributes
    client = await joined(run, {str(PROGRAM): [*breakpoints]}, attach=attributes, timeout=STARTS)
    await listed(client, "state", *["running"] * (WORKERS + 1), within=STARTS)
    return run, client


async def left(client: DapClient, run: Command, cluster: DaskCluster) -> None:
    """Leave: nothing of ours is in the cluster any more."""
    await client.disconnect()
    run.process.terminate()
    assert (await run.ends()).code == 0
    state = await cluster.state("workers")
    assert {name: state[name] for name in NOTHING} == NOTHING
    assert len(state["workers"]) == WORKERS


async def test_a_breakpoint_holds_two_workers_of_a_running_cluster(
    user: User, cluster: DaskCluster
) -> None:
    first = {"line": MEAN, "condition": "ranks(1,3): day.number > 7"}
    run, client = await attached(user, cluster, first)
    job = await cluster.runs()
    await first_stop(client, MEAN, "dask:1", "dask:3")
    where = [None, MEAN, None, MEAN, None]
    entries = await listed(client, "line", *where, within=STARTS)
    assert [each["function"] for each in entries] == [None, "clean", None, "clean", None]
    values = await cast(client, "dask:1,3", "p day.number")
    assert [ranks for ranks, _ in values] == ["dask:1", "dask:3"]
    assert all(int(value) > 7 for _, value in values)
    names = await cast(client, "dask:0-3", "p dask_worker.name")
    assert names == [(f"dask:{rank}", f"'w-{rank}'") for rank in range(WORKERS)]
    assert await cast(client, "scheduler:0", "p len(dask_scheduler.workers)") == [
        ("scheduler:0", str(WORKERS))
    ]
    asked = {"expression": "len(day.readings)", "ranks": "dask:1,3"}
    (same,) = (await client.request("compare", asked, timeout=LIMIT))["values"]
    assert same["ranks"] == "dask:1,3"
    await control(client, "next", entries[1])
    await listed(client, "line", None, MEAN + 1, None, MEAN + 1, None, within=STARTS)
    assert await cast(client, "dask:1,3", "p round(mean) in range(31)") == [("dask:1,3", "True")]
    await let_go(client)
    assert await job.ends() == (0, RESULT)
    await left(client, run, cluster)


@pytest.mark.rest
async def test_the_dashboard_is_named_and_what_workers_logged_and_printed(
    user: User, cluster: DaskCluster
) -> None:
    first = {"line": MEAN, "condition": "ranks(2): True"}
    run, client = await attached(user, cluster, first, redirectOutput=True)
    address = re.search(r"dashboard at: *(\S+)", cluster.log("scheduler"))
    assert address
    await run.says(f"dashboard: {address[1]}")
    asked = re.search(r'dap-mux cast (\S+) "(p dask_worker.get_logs.*)"', PAGE)
    assert asked
    logs = await cast(client, asked[1], asked[2])
    assert [each for each, _ in logs] == [f"dask:{rank}" for rank in range(WORKERS)]
    assert all("Registered to:" in text for _, text in logs)
    job = await cluster.runs()
    await being(client, "dask:2", line=MEAN)
    await cast(client, "dask:2", "p print('day', day.number >= 0)")

    def is_shown() -> bool:
        said = "".join(body["output"] for body in bodies(client, "output"))
        return "[dask:2] day True" in said.splitlines()

    await client.wait_for(is_shown, timeout=LIMIT, what="what it printed")
    await let_go(client)
    assert await job.ends() == (0, RESULT)
    await left(client, run, cluster)


async def let_go(client: DapClient) -> None:
    """Let all ranks run on alone."""
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)


async def test_a_worker_killed_while_stopped_is_back_and_stops_again(
    user: User, cluster: DaskCluster
) -> None:
    """Its Nanny starts it again; until then its tasks run on the others."""
    run, client = await attached(user, cluster, {"line": MEAN, "condition": "ranks(2): True"})
    job = await cluster.runs()
    entry = await being(client, "dask:2", line=MEAN)
    user.signal(entry["pid"], signal.SIGKILL)
    assert await job.ends() == (0, RESULT)
    await being(client, "dask:2", not_pid=entry["pid"], state="running")
    again = await cluster.runs()
    assert (await being(client, "dask:2", line=MEAN))["pid"] != entry["pid"]
    await let_go(client)
    assert await again.ends() == (0, RESULT)
    await left(client, run, cluster)


@pytest.mark.rest
async def test_a_stop_longer_than_the_schedulers_patience_loses_no_worker(
    user: User, cluster: DaskCluster
) -> None:
    """While one worker is stopped, another sends no heartbeat: all of its threads are held."""
    run, client = await attached(user, cluster, {"line": MEAN, "condition": "ranks(1): True"})
    job = await cluster.runs()
    before = [(await being(client, f"dask:{rank}"))["pid"] for rank in range(WORKERS)]
    stopped = await being(client, "dask:1", line=MEAN)
    await cluster.is_patient()
    user.signal(before[2], signal.SIGSTOP)
    await cluster.has_been_silent(before[2], 2 * TTL_S)
    user.signal(before[2], signal.SIGCONT)
    await client.request(
        "setBreakpoints", {"source": {"path": str(PROGRAM)}, "breakpoints": []}, timeout=LIMIT
    )
    await client.request("continue", {"threadId": stopped["threadId"]}, timeout=LIMIT)
    assert await job.ends() == (0, RESULT)
    assert [(await being(client, f"dask:{rank}"))["pid"] for rank in range(WORKERS)] == before
    assert "failed to heartbeat" not in cluster.log("scheduler")
    await left(client, run, cluster)


async def test_an_exception_of_a_task_stops_in_the_users_frame(
    user: User, cluster: DaskCluster
) -> None:
    """With its values, and before the driver hears of it, and nobody has to ask for that."""
    run, client = await attached(user, cluster)
    job = await cluster.runs("--bad", "11")
    entries = await stopped_somewhere(client)
    (entry,) = [each for each in entries if each["state"] == "stopped"]
    assert (entry["function"], entry["line"]) == ("clean", MEAN)
    rank = f"dask:{entry['rank']}"
    assert await cast(client, rank, "p day.number, day.readings[3]") == [(rank, "(11, 'n/a')")]
    told = await client.request("exceptionInfo", {"threadId": entry["threadId"]}, timeout=LIMIT)
    assert told["exceptionId"].split()[0] == "TypeError"
    await let_go(client)
    code, text = await job.ends()
    assert code == 1
    assert "TypeError: unsupported operand type(s) for +: 'float' and 'str'" in text
    await left(client, run, cluster)


async def test_a_failed_task_runs_again_here_with_its_inputs(
    user: User, cluster: DaskCluster
) -> None:
    """It stops at the first line of the task's function, and where it fails."""
    job = await cluster.runs("--bad", "11", "--keep")
    await until(lambda: "TypeError" in job.log.read_text("utf-8"), within=STARTS, what="a failure")
    rerun = ours(typed("dask.md", 2)[1], "dask:tcp://HOST:8786", f"dask:{cluster.address}")
    words = (*rerun, "--python", str(cluster.python))
    run = await user.start(*words)
    client = await joined(run, timeout=STARTS)
    first = await listed(client, "line", line("present = [reading"), within=STARTS)
    assert (first[0]["group"], first[0]["rank"], first[0]["function"]) == ("rerun", 0, "clean")
    assert await cast(client, "0", "p day.number, day.readings[3]") == [("0", "(11, 'n/a')")]
    await client.request("continue", {"threadId": first[0]["threadId"]}, timeout=LIMIT)
    failed = await listed(client, "line", MEAN, within=STARTS)
    assert failed[0]["reason"] == "exception"
    await let_go(client)
    done = await run.ends(within=STARTS)
    assert done.code == 1
    assert "TypeError: unsupported operand" in done.err
    unknown = await user.does("rerun", "clean-99", *words[2:])
    assert unknown.code == 3
    assert "no task clean-99 in the cluster" in unknown.err
    assert "failed tasks: clean-11" in unknown.err


async def stopped_somewhere(client: DapClient) -> list[Json]:
    """Wait until a rank has stopped, and is known to stand at a line; return all entries."""
    found = await seen(lambda: client.request("list", timeout=LIMIT), stands_somewhere)
    return list(found["ranks"])


def stands_somewhere(body: Json) -> bool:
    return any(each["line"] for each in body["ranks"])


async def test_a_driver_runs_with_its_local_cluster_in_one_session(user: User) -> None:
    """One command, and the program unchanged: Nannies start the workers from the driver."""
    run = await launch(user, environment("dask"), ours(typed("dask.md", 0)[0]))
    program = str(user.folder / "examples" / "dask" / "readings.py")
    first = {"line": MEAN, "condition": "ranks(1,3): day.number > 7"}
    client = await joined(run, {program: [first]}, timeout=STARTS)
    where = [None, None, MEAN, None, MEAN]
    entries = await listed(client, "line", *where, within=STARTS)
    assert [each["group"] for each in entries] == ["client", *["dask"] * WORKERS]
    await control(client, "next", entries[2])
    await listed(client, "line", None, None, MEAN + 1, None, MEAN + 1, within=STARTS)
    assert await cast(client, "1,3", "p day.number > 7") == [("dask:1,3", "True")]
    await let_go(client)
    done = await run.ends(within=STARTS)
    assert (done.code, done.out) == (0, RESULT), done.err
    await user.nothing_is_left(within=LIMIT)


@pytest.mark.rest
async def test_one_failed_task_is_one_stop(user: User) -> None:
    """Neither where its traceback is made anew in other processes, nor in the driver."""
    run = await launch(user, environment("dask"), [*ours(typed("dask.md", 0)[0]), "--bad", "11"])
    client = await joined(run, timeout=STARTS)
    await client.wait_event("stopped", timeout=STARTS)
    entries = await stopped_somewhere(client)
    (entry,) = [each for each in entries if each["state"] == "stopped"]
    assert (entry["group"], entry["line"]) == ("dask", MEAN)
    await client.request("continue", {"threadId": entry["threadId"]}, timeout=LIMIT)
    await client.wait_event("terminated", timeout=STARTS)
    assert len(bodies(client, "stopped")) == 1
    await client.disconnect()
    done = await run.ends(within=STARTS)
    assert done.code == 1
    assert "TypeError: unsupported operand" in done.err


async def test_each_task_of_a_worker_has_a_row(user: User) -> None:
    """Threads have their worker's name before Dask's own."""
    words = [*ours(typed("dask.md", 0)[0]), "--threads-per-worker", "2"]
    run = await launch(user, environment("dask"), words)
    program = str(user.folder / "examples" / "dask" / "readings.py")
    first = {"line": MEAN, "condition": "ranks(1): True"}
    client = await joined(run, {program: [first]}, timeout=STARTS)

    async def tasks() -> list[Json]:
        rows = (await client.request("threads", timeout=LIMIT))["threads"]
        return [each for each in rows if "1-Dask-Default-Threads" in each["name"]]

    days = set()
    for each in await seen(tasks, lambda found: len(found) == 2):
        row = {"threadId": each["id"]}
        top = (await client.request("stackTrace", row, timeout=LIMIT))["stackFrames"][0]
        asked = {"expression": "day.number", "frameId": top["id"], "context": "watch"}
        days.add((await client.request("evaluate", asked, timeout=LIMIT))["result"])
    assert len(days) == 2
    await let_go(client)
    done = await run.ends(within=STARTS)
    assert (done.code, done.out) == (0, RESULT), done.err


async def test_workers_in_the_drivers_own_process_are_debugged_there(user: User) -> None:
    """The driver calls the session, for once."""
    command, *words = ours(typed("dask.md", 0)[0])
    run = await launch(user, environment("dask"), [command, "--dial", *words, "--threads"])
    program = str(user.folder / "examples" / "dask" / "readings.py")
    first = {"line": MEAN, "condition": "day.number == 11"}
    client = await joined(run, {program: [first]}, timeout=STARTS)
    (entry,) = await listed(client, "line", MEAN, within=STARTS)
    assert (entry["group"], entry["rank"], entry["function"]) == ("client", 0, "clean")
    assert await cast(client, "0", "p day.number") == [("0", "11")]
    await let_go(client)
    done = await run.ends(within=STARTS)
    assert (done.code, done.out) == (0, RESULT), done.err
