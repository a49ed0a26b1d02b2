"""Jobs of Ray: actors and tasks of real clusters as ranks, by the commands of docs/ray.md."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.client.client import default_filters
from tests.launchers.launching import (
    EXAMPLES,
    ROOT,
    STARTS,
    cast,
    control,
    launch,
    line,
    released,
    seen,
)
from tests.launchers.named_ranks import first_stop, ranks, standing
from tests.launchers.pages import ours, typed
from tests.launchers.ray_scene import SERVICE, Service
from tests.launchers.tools import command, environment
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, Command, Json, User, listed
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(300)
RUN, ATTACH, ATTACH_NEAREST = typed("ray.md", 0)
(CAST,), (ATTACH_PID,) = typed("ray.md", 1), typed("ray.md", 2)
PAGE: Final = (ROOT / "docs/ray.md").read_text("utf-8")
CONDITION: Final = "Rollout.ranks(1,3): step == 1"
SCRIPT: Final = EXAMPLES / "ray" / "train.py"
TROUBLE: Final = SERVICE.with_name("ray_trouble.py")
CONCURRENT: Final = SERVICE.with_name("ray_concurrent.py")
RESULT: Final = ["step 0: policy 0.8500", "step 1: policy 1.6148", "step 2: policy 1.9865"]
DEFAULTS: Final = ["uncaught", "userUnhandled"]
VALUE: Final = line(SERVICE, "# here")
FOUND: Final = line(SERVICE, "return found")
FAILED: Final = line(SERVICE, "number / 0")


def results(output: str) -> list[str]:
    """What the driver has printed."""
    return [each for each in output.splitlines() if each.startswith("step ")]


async def test_a_job_started_by_us(user: User, cluster: dict[str, str]) -> None:
    """Two of four actors are held by a condition, compared and stepped; then it runs to its end."""
    assert f"`{CONDITION}`" in PAGE
    run = await launch(user, environment("ray"), ours(RUN), **cluster)
    program = str(user.folder / "examples/ray/train.py")
    at = line(SCRIPT, "return samples")
    stop = {"line": at, "condition": CONDITION}
    client = await joined(run, {program: [stop]}, timeout=STARTS)
    found = await first_stop(client, at, "Rollout:1", "Rollout:3")
    assert {"driver:0", "Rollout:0", "Rollout:2", "Trainer:0", "Trainer:1"} <= {*found}
    assert [found[f"Trainer:{each}"]["coords"] for each in range(2)] == [
        {"bundle": 0},
        {"bundle": 1},
    ]
    assert (await user.does(*ours(CAST))).out == "{Rollout:1}: 1 | {Rollout:3}: 3\n"
    asked = {"ranks": "Rollout:1,3", "expression": "step"}
    (same,) = (await client.request("compare", asked, timeout=LIMIT))["values"]
    assert (same["ranks"], same["value"]) == ("Rollout:1,3", "1")
    await client.request("setBreakpoints", {"source": {"path": program}, "breakpoints": []})
    await control(client, "next", found["Rollout:3"])
    done = await released(user, run, client)
    assert results(done.out) == RESULT


async def left(run: Command, client: DapClient) -> None:
    """Leave the job alone."""
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)
    await client.request("disconnect", {"terminateDebuggee": False}, timeout=LIMIT)
    run.process.terminate()
    assert (await run.ends(within=STARTS)).code == 0


async def test_a_job_that_runs(user: User, cluster: dict[str, str]) -> None:
    """Actors without names are debugged, by one editor after the other, and again afterwards.

    Among them are one with threads and one with an event loop. Nothing of ours stays in them.
    """
    command("gdb")
    service = await Service.start(user, cluster)
    run = await service.attach(ours(ATTACH, "HOST:6379", service.address))
    client = await run.client()
    stop = {"line": VALUE, "condition": "Worker.ranks(1,3): step > 0"}
    breakpoints: dict[str, list[Json]] = {str(SERVICE): [stop, {"line": line(SERVICE, "# async")}]}
    offered = await client.handshake({"justMyCode": True}, breakpoints=breakpoints, timeout=STARTS)
    assert default_filters(offered) == DEFAULTS
    found = await standing(client, VALUE, "Worker:1", "Worker:3")
    await standing(client, line(SERVICE, "# async"), "AsyncWorker:0")
    assert await cast(client, "AsyncWorker:0", "p value - step") == [("AsyncWorker:0", "400")]
    same = await cast(client, "Worker:1,3", "p value == self.number * 100 + step")
    assert same == [("Worker:1,3", "True")]
    await control(client, "next", found["Worker:3"])
    await client.disconnect()

    client = await joined(
        run,
        {str(SERVICE): [stop]},
        name="next editor",
        attach={"justMyCode": False},
        timeout=STARTS,
    )
    await standing(client, VALUE, "Worker:1", "Worker:3")
    await left(run, client)

    run = await service.attach(ours(ATTACH, "HOST:6379", service.address))
    client = await joined(run, {str(SERVICE): [stop]}, timeout=STARTS)
    await standing(client, VALUE, "Worker:1", "Worker:3")
    await stopped_in_a_long_method(user, client)
    await left(run, client)
    assert await service.ends() == "looked [0, 0, 0, 0, 0]\n"  # no port of ours


async def stopped_in_a_long_method(user: User, client: DapClient) -> None:
    """An actor is shown as waiting, with the command that does not wait; that stops it there."""
    busy = (await standing(client, None, "Busy:0"))["Busy:0"]
    words = ours(ATTACH_PID, "PID", str(busy["pid"]))
    assert busy["state"] == "waiting"
    assert f"`dap-mux {' '.join(words)}`" in busy["reason"]
    own = await user.start(*words)
    at = line(SERVICE, "# busy")
    inside = await joined(own, {str(SERVICE): [at]}, name="its own", timeout=STARTS)
    (entry,) = await listed(inside, "line", at, within=STARTS)
    assert (entry["function"], entry["pid"]) == ("wait", busy["pid"])
    await left(own, inside)


@pytest.mark.rest
async def test_rays_own_breakpoint(user: User, cluster: dict[str, str]) -> None:
    """Two tasks wait in it at once, one after an exception: all stop in the user's code."""
    service = await Service.start(user, {**cluster, "RAY_DEBUG_POST_MORTEM": "1"}, "--looks")
    run = await service.attach(ours(ATTACH_NEAREST), RAY_ADDRESS=service.address)
    client = await joined(run, timeout=STARTS)
    names = await tasks(client, FOUND, FOUND, FAILED)
    *looks, failed = names
    values = dict(await cast(client, " | ".join(looks), "p found"))
    assert sorted(values.values()) == ["0", "7"]
    assert await cast(client, failed, "p number") == [(failed, "1")]
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)
    assert await service.ends() == "looked [0, 7]\nfailed\n"
    await client.wait_event("terminated", timeout=STARTS)
    assert (await run.ends(within=STARTS)).code == 0  # the cluster has ended


async def tasks(client: DapClient, *lines: int) -> list[str]:
    """Wait until tasks stand at these lines; their names, in the same order."""

    async def look() -> dict[str, int]:
        entries = (await ranks(client)).items()
        return {name: each["line"] or 0 for name, each in entries if name.startswith("task:")}

    found = await seen(look, lambda now: sorted(now.values()) == [*lines])
    return sorted(found, key=found.__getitem__)


HOOK: Final = """\
def adapt(runtime_env):
    runtime_env.setdefault("env_vars", {})["HOOKED"] = "by the user"
    return runtime_env
"""
# Ray gives a machine that does not answer up for lost after 2 s, not after 15 s and more.
IMPATIENT: Final = {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_failure_threshold": "3",
}
HELD_S: Final = 4.0


async def test_trouble(user: User, cluster: dict[str, str]) -> None:
    """Exceptions, breakpoints in the code, a killed actor and a long pause; hooks of the user's."""
    user.script(HOOK, "users_hook.py")
    hooks = {
        "RAY_RUNTIME_ENV_HOOK": "users_hook.adapt",
        "PYTHONPATH": os.pathsep.join((str(user.folder), os.environ.get("PYTHONPATH", ""))),
    }
    words = ["run", "--", "python", str(TROUBLE)]
    variables = {**cluster, **hooks, **IMPATIENT, "RAY_DEBUG_POST_MORTEM": "1"}
    run = await launch(user, environment("ray"), words, **variables)
    client = await joined(run, timeout=STARTS)
    found = await standing(client, line(TROUBLE, "share ="), "Worker:3")
    assert found["Worker:3"]["reason"] == "exception"
    assert await cast(client, "Worker:3", "p self.number, by") == [("Worker:3", "(3, 0)")]
    await control(client, "continue", found["Worker:3"])

    after = line(TROUBLE, "return seen")
    found = await standing(client, after, "Worker:0", "Worker:1")
    stopped = time.monotonic()
    user.signal(found["Worker:1"]["pid"], signal.SIGKILL)
    killed = found["Worker:1"]["pid"]

    async def is_back() -> bool:
        entry = (await ranks(client))["Worker:1"]
        return bool(entry["pid"] != killed and entry["line"] == after)

    while not await is_back() or time.monotonic() < stopped + HELD_S:
        assert time.monotonic() < stopped + STARTS
        await asyncio.sleep(0.05)
    values = dict(await cast(client, "Worker:0,1", "p seen"))
    assert sorted(values.values()) == ["0", "7"]
    done = await released(user, run, client)
    said = [
        each
        for each in done.out.splitlines()
        if each.startswith(("told", "error", "looked", "shares"))
    ]
    assert said == [
        "told by the user by the user",
        "error True",
        "looked 0 7",
        "shares 0.0 0.5 1.0 1.5",
    ]


@pytest.mark.rest
async def test_methods_side_by_side(user: User, cluster: dict[str, str]) -> None:
    """Threads, an event loop, and processes that a task starts; the ranks call the session.

    They run in a copy of a folder with a module and with the driver's script.
    """
    folder = user.folder / "src"
    folder.mkdir()
    script = str(shutil.copy(CONCURRENT, folder))
    module = folder / "sevens.py"
    module.write_text("def times(number):\n    return number * 7\n", "utf-8")
    words = ["run", "--dial", "--", "python", script, str(folder)]
    assert f"`dap-mux {' '.join(words[:2])}`" in PAGE
    variables = {**cluster, "DAP_MUX_DIAL_LISTEN": "127.0.0.1:0", "RAY_DEBUG": "legacy"}
    run = await launch(user, environment("ray"), words, **variables)
    marks = {name: line(CONCURRENT, f"# {name}") for name in ("threaded", "async", "forked")}
    breakpoints = {script: marks.values(), str(module): [2]}
    client = await joined(run, breakpoints, timeout=STARTS)
    found = await standing(client, 2, "Threaded:0")
    assert found["Threaded:0"]["path"] == str(module)
    empty = {"source": {"path": str(module)}, "breakpoints": []}
    await client.request("setBreakpoints", empty, timeout=LIMIT)
    await control(client, "continue", found["Threaded:0"])
    await standing(client, marks["threaded"], "Threaded:0")
    await standing(client, marks["async"], "Async:0")
    both = await threads_of(client, "Threaded", 2)
    assert sorted([await number_in(client, each) for each in both]) == ["1", "2"]
    assert (await cast(client, "Async:0", "p part // number")) == [("Async:0", "9")]
    await standing(client, line(CONCURRENT, "return parts.get()"), "task:0")
    assert await cast(client, "task:0", "p number, int(printed)") == [("task:0", "(5, 15)")]
    done = await released(user, run, client)
    assert "shares 7 14 9 18 split 6 15\n" in done.out


async def threads_of(client: DapClient, group: str, count: int) -> list[int]:
    """Wait until so many threads of a group's ranks have a row."""

    async def look() -> list[int]:
        rows = (await client.request("threads", timeout=LIMIT))["threads"]
        return [each["id"] for each in rows if f"@{group} / " in each["name"]]

    return await seen(look, lambda found: len(found) == count)


async def number_in(client: DapClient, row: int) -> str:
    """The argument `number` of a stopped method."""
    stack = await client.request("stackTrace", {"threadId": row}, timeout=LIMIT)
    frame = next(each["id"] for each in stack["stackFrames"] if each["name"] == "share")
    asked = {"expression": "number", "frameId": frame, "context": "watch"}
    return str((await client.request("evaluate", asked, timeout=LIMIT))["result"])


LATE: Final = """\
import pathlib, time, ray
few = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
ray.init(**few)
ray.shutdown()
print("begun", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.05)
ray.init(**few)
print("started", flush=True)
"""


async def test_ray_starts_quietly_after_the_debugger_has_left(
    user: User, cluster: dict[str, str]
) -> None:
    """Ray closes all files of the processes that it forks: our ports in them are closed already."""
    script = user.script(LATE, "late.py")
    run = await launch(user, environment("ray"), ["run", "--", "python", script], **cluster)
    client = await joined(run, timeout=STARTS)
    await until(lambda: "begun" in run.out, within=STARTS, what="a driver")
    await client.request("disconnect", {"terminateDebuggee": False}, timeout=LIMIT)
    (user.folder / "go").touch()
    done = await run.ends(within=STARTS)
    assert done.code == 0, done.err
    assert "started" in done.out
    assert "Traceback" not in done.err
    assert "Bad file descriptor" not in done.err
