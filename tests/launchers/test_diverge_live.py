"""`--catch-diverged`: ranks of a real torch stop after the step in which replicas part."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient, Json
from tests.launchers.launching import STARTS, line, run_torch, value_in
from tests.real.driving import joined
from tests.support.processes.commands import Command, User, bodies, listed
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(420)
SCRIPT: Final = Path(__file__).parent / "scripts" / "diverge_live.py"
ENDS_S: Final = 240.0
STEP: Final = line(SCRIPT, "# STEP")


async def start(user: User, *options: str, **environ: str) -> tuple[Command, DapClient]:
    """Start two ranks; they wait for a debugger, which this brings."""
    run = await run_torch(user, options, SCRIPT, ranks=2, **environ)
    return run, await joined(run, name="editor", timeout=STARTS)


def told(client: DapClient) -> list[str]:
    """What the session has printed of it."""
    output = [body["output"] for body in bodies(client, "output")]
    return [each for each in output if each.startswith("dap-mux: diverged: ")]


async def stopped(client: DapClient) -> tuple[list[Json], int]:
    """The ranks, which have all stopped after the same step, and that step."""
    rows = await listed(client, "state", "stopped", "stopped", within=STARTS)
    assert [(row["reason"], row["line"]) for row in rows] == [("exception", STEP)] * 2
    steps = []
    for row in rows:
        said = await client.request("exceptionInfo", {"threadId": row["threadId"]})
        assert said["exceptionId"] == "Diverged"
        row["why"] = said["description"]
        steps.append(int((await value_in(client, row["threadId"], "step")).split()[0]))
    assert steps[0] == steps[1]
    return rows, steps[0]


async def runs_on(run: Command, client: DapClient, rows: list[Json]) -> None:
    """Let all ranks go: the job ends as it should, and nothing more is said."""
    for row in rows:
        await client.request("continue", {"threadId": row["threadId"]})
    assert (await run.ends(within=ENDS_S)).code == 0
    assert len(told(client)) == 1


async def test_a_missed_exchange_of_gradients_stops_all_after_the_same_step(user: User) -> None:
    run, client = await start(user, "--catch-diverged", PART="sync")
    rows, step = await stopped(client)
    assert step in (3, 4, 5)
    for row in rows:
        assert row["why"].startswith("step 3, rank 1: the gradient of "), row
        assert "differs: it was not exchanged in this step" in row["why"]
    expression = rows[0]["why"].partition("; compare: ")[2]
    assert re.fullmatch(r"model\.get_parameter\('module\.\S+'\)", expression), rows
    body = await client.request("compare", {"expression": f"{expression}.sum().item()"})
    assert [value["ranks"] for value in body["values"]] == ["0", "1"], body
    shown = bodies(client, "stopped")[-1]
    assert (shown["reason"], shown["text"]) == ("exception", "Diverged"), shown
    (said,) = told(client)
    assert f"; ranks stop after step {step}; " in said
    linked = [body["line"] for body in bodies(client, "output") if body["output"] == said]
    assert len(linked) == 1
    assert SCRIPT.read_text("utf-8").splitlines()[linked[0] - 1]
    await runs_on(run, client, rows)


async def test_a_healthy_job_runs_to_its_end_and_a_later_one_stops_where_it_had_other_values(
    user: User,
) -> None:
    run, client = await start(user, "--catch-diverged", "--comm", "hash", "--comm-file", "before")
    done = await run.ends(within=ENDS_S)
    assert done.code == 0
    assert done.out.count("step 11") == 2
    assert not told(client)
    run, client = await start(user, "--against", "before", PART="rate")
    rows, step = await stopped(client)
    assert step in (3, 4, 5)
    for row in rows:
        expected = (
            r"step 3, ranks 0-1, other than in before: values differ by \S+ in the AdamW step"
        )
        assert re.match(expected, row["why"]), row
    (said,) = told(client)
    assert f"; ranks stop after step {step}; " in said
    await runs_on(run, client, rows)


async def test_ranks_stop_where_an_expression_differs(user: User) -> None:
    text = "step if step < 4 else dist.get_rank()"
    run, client = await start(user, "--catch-unequal", text)
    rows, step = await stopped(client)
    assert step in (4, 5, 6)
    for row in rows:
        expected = f"step 4, rank 1: `{text}` differs after a step, and is said to be equal, at "
        assert row["why"].startswith(expected), row
    await runs_on(run, client, rows)


async def test_it_is_switched_on_in_a_job_that_runs_and_left_again(
    user: User, tmp_path: Path
) -> None:
    file = tmp_path / "part"
    run, client = await start(user, PART=str(file))
    await until(lambda: "step 9" in run.out, within=STARTS, what="steps")
    await client.request("setExceptionBreakpoints", {"filters": ["diverged"]})
    seen = run.out.count("step ")
    await until(lambda: run.out.count("step ") > seen + 20, within=STARTS, what="more steps")
    file.touch()
    rows, _ = await stopped(client)
    assert ", rank 1: head.weight differs " in rows[0]["why"], rows
    assert len(told(client)) == 1
    await client.request("disconnect", {"terminateDebuggee": False})
    seen = run.out.count("step ")
    await until(lambda: run.out.count("step ") > seen + 20, within=STARTS, what="more steps")
    user.signal(run.process.pid, signal.SIGINT)
    await run.ends(within=ENDS_S)


async def test_a_rank_that_dies_holds_nobody(user: User, tmp_path: Path) -> None:
    file = tmp_path / "part"
    run, client = await start(user, "--catch-diverged", PART=str(file))
    await until(lambda: "step 9" in run.out, within=STARTS, what="steps")
    rows = await listed(client, "state", "running", "running", within=STARTS)
    file.touch()
    os.kill(rows[1]["pid"], signal.SIGKILL)
    assert (await run.ends(within=ENDS_S)).code != 0
