"""torchrun: four ranks of DistributedDataParallel on CPU, by the commands of docs/launchers.md.

Nothing of dap-mux is installed in torchrun's own environment.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.launchers.launching import (
    EXAMPLES,
    STARTS,
    cast,
    control,
    documented,
    held,
    launch,
    line,
    released,
    weight,
)
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User, listed

pytestmark = pytest.mark.timeout(300)
TRAIN = EXAMPLES / "torchrun" / "train.py"
SPREAD = Path(__file__).parent / "scripts" / "spread_tensors.py"
ENVIRON = {"OMP_NUM_THREADS": "1"}
BACKWARD = line(TRAIN, "loss.backward()")


async def test_data_parallel_ranks_on_a_mesh(user: User) -> None:
    run = await launch(user, environment("torch"), documented("PyTorch"), **ENVIRON)
    program = str(user.folder / "examples" / "torchrun" / "train.py")
    first = {"line": BACKWARD, "condition": "ranks(1,3): step == 1"}
    client = await joined(run, {program: [first]}, timeout=STARTS)
    entries = await held(client, 1, 3, at=BACKWARD)
    # The mesh is there once it is made: nobody has spoken of its dimensions yet.
    places = [{"dp": rank // 2, "tp": rank % 2} for rank in range(4)]
    await listed(client, "coords", *places, within=STARTS)
    assert await cast(client, "ranks(tp=1)", "p step, tuple(batch.shape)") == [
        ("1,3", "(1, (1, 1))")
    ]
    rows = (await client.request("threads", timeout=LIMIT))["threads"]
    assert [row["name"] for row in rows] == [
        f"rank {rank} · dp={rank // 2} tp={rank % 2}" for rank in range(4)
    ]
    second = {"line": BACKWARD, "condition": "ranks(tp=0): step == 3"}
    body = await client.request(
        "setBreakpoints", {"source": {"path": program}, "breakpoints": [second]}, timeout=LIMIT
    )
    assert [each["verified"] for each in body["breakpoints"]] == [True]

    # Over the collective, which takes all four: the other two stand in it already.
    await control(client, "next", entries[1])
    await held(client, 1, 3, at=BACKWARD + 1)
    await control(client, "continue", entries[1])
    await held(client, 0, 2, at=BACKWARD)
    assert await cast(client, "ranks(tp=0)", "p step") == [("0,2", "3")]
    done = await released(user, run, client)
    assert done.out.startswith(weight(5) + " on DeviceMesh("), done.out


async def test_tensors_as_cells(user: User) -> None:
    """By the placements of a `DTensor`, and one row a rank; the tensors stay where they are."""
    words = ["run", "--", "torchrun", "--standalone", "--nproc-per-node", "4", str(SPREAD)]
    run = await launch(user, environment("torch"), words, **ENVIRON)
    at = line(SPREAD, "the ranks are stopped here")
    client = await joined(run, {str(SPREAD): [{"line": at}]}, timeout=STARTS)
    await held(client, 0, 1, 2, 3, at=at)

    body = await client.request("array", {"expression": "whole", "timeout": LIMIT}, timeout=LIMIT)
    (part,) = body["parts"]
    assert (body["shape"], part["grid"]) == ([4096, 4100], [256, 242])
    assert len(json.dumps(body)) < 1_100_000, "64 MB stay in the rank"
    asked = {"expression": "both", "ranks": "all", "timeout": LIMIT}
    body = await client.request("array", asked, timeout=LIMIT)
    corners = [(one["ranks"], one["row"], one["column"]) for one in body["parts"]]
    assert corners == [("0", 0, 0), ("1", 0, 2050), ("2", 2048, 0), ("3", 2048, 2050)]
    assert body["parts"][3]["statistics"]["max"] == pytest.approx(4096 * 4100, rel=1e-6)
    assert {one["grid"][0] for one in body["parts"]} == {128}
    body = await client.request("array", {**asked, "expression": "columns"}, timeout=LIMIT)
    assert [(one["ranks"], one["column"]) for one in body["parts"]] == [("0,2", 0), ("1,3", 2050)]
    asked = {"expression": "small", "ranks": "all", "rows": "$rank"}
    body = await client.request("array", asked, timeout=LIMIT)
    assert [(one["row"], one["statistics"]["mean"]) for one in body["parts"]] == [
        (rank, float(rank)) for rank in range(4)
    ]
    await released(user, run, client)


async def test_an_exception_in_one_rank_is_shown_before_torchrun_ends_the_others(
    user: User,
) -> None:
    run = await launch(user, environment("torch"), documented("--fail"), **ENVIRON)
    client = await joined(run, timeout=STARTS)
    await listed(client, "state", "running", "running", "stopped", "running", within=STARTS)
    # Where it stands may be known a moment after it is known to stand.
    entries = await listed(client, "function", None, None, "main", None)
    assert (entries[2]["reason"], entries[2]["function"]) == ("exception", "main")
    row = entries[2]["threadId"]
    trace = await client.request("stackTrace", {"threadId": row}, timeout=LIMIT)
    top = trace["stackFrames"][0]
    assert top["line"] == line(TRAIN, "loss = (parallel(batch)")
    scopes = (await client.request("scopes", {"frameId": top["id"]}, timeout=LIMIT))["scopes"]
    local = {"variablesReference": scopes[0]["variablesReference"]}
    values = (await client.request("variables", local, timeout=LIMIT))["variables"]
    shown = {each["name"]: each["value"] for each in values}
    assert (shown["step"], shown["shape"], shown["rank"]) == ("2", "(2, 3)", "2")
    told = await client.request("exceptionInfo", {"threadId": row}, timeout=LIMIT)
    assert "shapes cannot be multiplied" in told["description"]

    # The others wait for it, and still answer.
    asked = "p __import__('torch').distributed.get_rank()"
    assert await cast(client, "0-1,3", asked) == [(str(rank), str(rank)) for rank in (0, 1, 3)]
    done = await released(user, run, client, code=1)
    assert done.out == ""
    assert "ChildFailedError" in done.err
    assert "rank      : 2 (local_rank: 2)" in done.err
    assert "Traceback (most recent call last)" in done.err
