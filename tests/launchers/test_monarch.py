"""Jobs of Monarch: real procs, with the actors in them as ranks."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from tests.launchers.launching import (
    EXAMPLES,
    ROOT,
    STARTS,
    cast,
    control,
    launch,
    line,
    released,
)
from tests.launchers.named_ranks import being, first_stop, standing
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.callers import told_by
from tests.support.processes.commands import LIMIT, Json, User, bodies
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(300)
SCRIPT: Final = EXAMPLES / "monarch" / "train.py"
PAGE: Final = (ROOT / "docs/monarch.md").read_text("utf-8")
RUN: Final = ("run", "--", "python", "examples/monarch/train.py")
DIAL: Final = ("run", "--dial", *RUN[1:])
RESULT: Final = [
    "step 0: weight 0.7083, good enough: False",
    "step 1: weight 1.1658, good enough: False",
    "step 2: weight 1.4612, good enough: False",
]


def results(output: str) -> list[str]:
    """What the driver has printed."""
    return [each for each in output.splitlines() if each.startswith("step ")]


async def test_a_job_started_by_us(user: User) -> None:
    """Two of four actors are held by a condition, compared and stepped; then it runs to its end."""
    assert f"dap-mux {' '.join(RUN)} " in PAGE
    run = await launch(user, environment("monarch"), [*RUN])
    client = await run.client()
    program = str(user.folder / "examples/monarch/train.py")
    at, judged = line(SCRIPT, "gradient = -sum"), line(SCRIPT, "return distance <")
    stops = [
        {"line": at, "condition": "trainer.ranks(tp=1): step == 1"},
        {"line": judged, "condition": "judge.ranks(1): step == 1"},
    ]
    await client.handshake({"justMyCode": True}, breakpoints={program: stops}, timeout=STARTS)
    found = await first_stop(client, at, "procs:1", "procs:3")
    assert {*found} == {"client:0", *(f"procs:{each}" for each in range(4))}
    assert [found[f"procs:{each}"]["coords"] for each in range(4)] == [
        {"dp": dp, "tp": tp} for dp in range(2) for tp in range(2)
    ]
    assert found["procs:3"]["actor"] == {"name": "trainer", "rank": 3, "coords": {"dp": 1, "tp": 1}}
    assert await cast(client, "trainer.ranks(tp=1)", "p self.rank, len(errors)") == [
        ("procs:1", "(1, 3)"),
        ("procs:3", "(3, 3)"),
    ]
    await control(client, "next", found["procs:3"])
    found = await standing(client, at + 1, "procs:1", "procs:3")
    shared = {"ranks": "trainer:1,3", "expression": "weight"}
    compared = (await client.request("compare", shared, timeout=LIMIT))["values"]
    assert [each["ranks"] for each in compared] == ["procs:1,3"]
    await control(client, "next", found["procs:3"])  # beyond the endpoint
    found = await standing(client, judged, "procs:3")
    assert found["procs:3"]["actor"] == {"name": "judge", "rank": 1, "coords": {"dp": 1}}
    assert await cast(client, "judge:1", "p distance < 2") == [("procs:3", "True")]
    done = await released(user, run, client)
    assert results(done.out) == RESULT


TROUBLE: Final = Path(__file__).with_name("scripts") / "monarch_trouble.py"
# Monarch would give an actor up for lost after 5 s in one call, and not after 2 min.
LIMIT_OF_MONARCH: Final = {"HYPERACTOR_MESH_SUPERVISION_WATCHDOG_TIMEOUT": "5s"}
HELD_S: Final = 6.0
INTERRUPTED: Final = 130  # Monarch interrupts the driver
OF_THE_PAGE: Final = (
    'this_host().spawn_procs({"dp": 2, "tp": 2}, bootstrap=dap_mux.monarch.bootstrap)'
)


async def test_trouble(user: User) -> None:
    """Exceptions, breakpoints in the code, a long pause, a renamed mesh and a killed proc."""
    words = ["run", "--", "python", str(TROUBLE)]
    run = await launch(user, environment("monarch"), words, **LIMIT_OF_MONARCH)
    client = await run.client()
    stops: list[Json] = [
        {"line": line(TROUBLE, "PREPARED"), "condition": "procs.ranks(at=2): True"},
        {"line": line(TROUBLE, "current_rank()["), "condition": "ranks(turn=2): True"},
        {"line": line(TROUBLE, "return turn + 1"), "condition": "waiter.ranks(1,2): True"},
    ]
    await client.handshake({"justMyCode": True}, breakpoints={str(TROUBLE): stops}, timeout=STARTS)
    found = await standing(client, stops[0]["line"], "procs:2")
    await control(client, "continue", found["procs:2"])

    found = await standing(client, line(TROUBLE, "return self.number"), "procs:3")
    stopped = time.monotonic()
    assert found["procs:3"]["reason"] == "exception"
    assert await cast(client, "worker:3", "p self.number, by") == [("procs:3", "(3, 0)")]
    await until(lambda: time.monotonic() > stopped + HELD_S, within=STARTS, what="a pause")
    await control(client, "continue", found["procs:3"])

    looks = line(TROUBLE, "return found")
    found = await standing(client, looks, "procs:0", "procs:1")
    assert await cast(client, "worker:0-1", "p found") == [("procs:0", "0"), ("procs:1", "7")]
    await control(client, "continue", found["procs:0"])

    found = await standing(client, stops[1]["line"], "procs:2")
    assert found["procs:2"]["actor"]["coords"] == {"turn": 2}
    assert found["procs:2"]["coords"] == {"at": 2, "turn": 2}
    await control(client, "continue", found["procs:2"])

    found = await standing(client, stops[2]["line"], "procs:1", "procs:2")
    killed = found["procs:1"]["pid"]
    user.signal(killed, signal.SIGKILL)
    await being(client, "procs:1", not_pid=killed, line=stops[2]["line"])
    done = await released(user, run, client)
    assert done.out.splitlines() == [
        "error True",
        "looked 0 7 14 21",
        "renamed 0 1 2 3",
        "lost SupervisionError",
        "waited 2 2 2 2",
    ]


async def test_a_proc_killed_while_all_are_stopped(user: User) -> None:
    """Monarch ends such a job: the reason is shown, and nothing hangs. Here ranks dial."""
    assert f"dap-mux {' '.join(DIAL)} " in PAGE
    run = await launch(user, environment("monarch"), [*DIAL])
    program = str(user.folder / "examples/monarch/train.py")
    at = line(SCRIPT, "gradient = -sum")
    breakpoints = {program: [{"line": at}]}
    client = await joined(run, breakpoints, timeout=STARTS)
    found = await standing(client, at, *(f"procs:{each}" for each in range(4)))
    user.signal(found["procs:2"]["pid"], signal.SIGKILL)
    await being(client, "procs:2", state="exited")
    await client.wait_event("terminated", timeout=STARTS)
    assert bodies(client, "exited") == [{"exitCode": INTERRUPTED}]
    await client.disconnect()
    done = await run.ends(within=STARTS)
    assert done.code == INTERRUPTED
    assert "the process this actor was running on failed: Killed(sig=9)" in done.err
    await user.nothing_is_left(within=LIMIT)


NO_STARTUP_FUNCTIONS: Final = """\
class SetupActor:
    pass
"""


async def test_a_release_of_monarch_that_has_changed(user: User) -> None:
    """Without its startup functions the message names what the program can do."""
    package = user.folder / "monarch/_src/actor"
    package.mkdir(parents=True)
    for folder in (package, *list(package.parents)[:2]):
        (folder / "__init__.py").touch()
    (package / "proc_mesh.py").write_text(NO_STARTUP_FUNCTIONS, "utf-8")
    user.script("import monarch._src.actor.proc_mesh\nprint('on')\n", "job.py")
    path = os.pathsep.join((str(user.folder), os.environ.get("PYTHONPATH", "")))
    words = ["run", "--no-wait", "--", "python", "job.py"]
    run = await launch(user, environment("monarch"), words, PYTHONPATH=path)
    done = await run.ends(within=STARTS)
    assert done.out == "on\n"
    assert "pass spawn_procs(bootstrap=dap_mux.monarch.bootstrap)" in done.err


async def test_a_program_that_another_has_started(user: User) -> None:
    """Its procs connect to the session, by what Monarch documents and nothing else."""
    attach = await user.start("attach", "procs=dial:4")
    client = await attach.client()
    text = SCRIPT.read_text("utf-8").replace(
        "import argparse\n", "import argparse\nimport dap_mux.monarch\n"
    )
    assert OF_THE_PAGE in PAGE
    text = text.replace('this_host().spawn_procs({"dp": 2, "tp": 2})', OF_THE_PAGE)
    program = Path(user.script(text))
    at = line(program, "gradient = -sum")
    stop = {"line": at, "condition": "trainer.ranks(1,3): step == 1"}
    await client.handshake({"justMyCode": True}, breakpoints={str(program): [stop]}, timeout=STARTS)
    python = str(environment("monarch") / "python")
    job = await asyncio.create_subprocess_exec(
        python, str(program),
        env={**user.environ, **await told_by(attach), "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    user.others.append(job)
    found = await standing(client, at, "procs:1", "procs:3")
    assert found["procs:3"]["coords"] == {"dp": 1, "tp": 1}
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)
    output, _ = await asyncio.wait_for(job.communicate(), STARTS)
    assert results(output.decode()) == RESULT
    await client.disconnect()
