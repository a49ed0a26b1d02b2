"""A condition in a line that runs all the time is named, and one that does not is not."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from tests.doctor.conftest import Doctor, Json, endpoint
from tests.real.driving import StartRanks, joined
from tests.support.processes.commands import LIMIT, User, line_of, listed

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]
PROGRAM: Final = """\
import os
import sys

number = 0
while not os.access(sys.argv[1], os.F_OK):
    for _ in range(10_000):
        number += 1  # hot
    number += 0  # cold
"""


async def test_a_condition_in_a_hot_line(
    doctor: Doctor, user: User, start_ranks: StartRanks
) -> None:
    path, go = user.folder / "hot.py", user.folder / "go"
    path.write_text(PROGRAM, "utf-8")
    (rank,) = await start_ranks(1, path, wait=False, arguments=[str(go)])
    attach = await user.start("attach", endpoint(rank))
    cold = {"line": line_of(str(path), "cold"), "condition": "number < 0"}
    breakpoints = {str(path): [cold]}
    client = await joined(attach, breakpoints, attach={"justMyCode": False})
    await listed(client, "state", "running")
    assert await doctor.causes() == []
    hot = {"line": line_of(str(path), "hot"), "condition": "number < 0"}
    wanted = {"source": {"path": str(path)}, "breakpoints": [hot]}
    await client.request("setBreakpoints", wanted, timeout=LIMIT)
    found = await named(doctor)
    assert found["where"] == f"{path}:{hot['line']}"
    assert "'number < 0' is evaluated" in found["evidence"][0]
    assert "if number < 0: breakpoint()" in found["fix"][0]
    await asyncio.to_thread(go.touch)
    assert await rank.ended(within=LIMIT) == 0
    await attach.ends()


async def named(doctor: Doctor) -> Json:
    """What it finds, once the rank has counted for a second."""
    causes: list[Json] = []
    while not causes:
        causes = await doctor.causes()
    (found,) = causes
    assert found["cause"] == "condition-cost"
    return found
