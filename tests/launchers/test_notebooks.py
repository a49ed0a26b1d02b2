"""Drivers in a notebook: its kernel starts the cluster, and the workers are ranks as ever."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import Final

import pytest

from dap_mux.client import DapClient
from tests.launchers.launching import EXAMPLES, STARTS, cast, launch, line, released, seen
from tests.launchers.named_ranks import ranks
from tests.launchers.pages import ours, typed
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, Json, User

pytestmark = pytest.mark.timeout(300)
NAME: Final = "driver.ipynb"
DASK_CELLS: Final = """\
%run -n examples/dask/readings.py
client = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"))
days = client.map(load, range(4), broken=False)
spreads = client.gather(client.map(spread, client.map(clean, days)))
print(round(sum(spreads), 2))

def half(number):
    part = number / 2
    breakpoint()
    return part

print(client.submit(half, 8).result())
"""
RAY_CELLS: Final = """\
%run examples/ray/train.py

import ray

@ray.remote
def half(number):
    part = number / 2
    breakpoint()
    return part

print(ray.get(half.remote(8)))
"""


@dataclass(frozen=True)
class Driver:
    """Its cells, and where a breakpoint in the script that one of them runs stops ranks."""

    engine: str
    cells: str
    script: str
    mark: str
    function: str
    stopped: tuple[str, ...]
    result: str


DRIVERS: Final = (
    Driver(
        engine="dask",
        cells=DASK_CELLS,
        script="dask/readings.py",
        mark="mean = sum(present)",
        function="clean",
        stopped=("dask:0", "dask:1"),
        result="237.62",
    ),
    Driver(
        engine="ray",
        cells=RAY_CELLS,
        script="ray/train.py",
        mark="return samples",
        function="generate",
        stopped=("Rollout:0", "Rollout:1", "Rollout:2", "Rollout:3"),
        result="step 2: policy 1.9865",
    ),
)


@pytest.mark.parametrize("driver", DRIVERS, ids=[each.engine for each in DRIVERS])
async def test_workers_of_a_driver_in_a_notebook(
    user: User, cluster: dict[str, str], driver: Driver
) -> None:
    """Breakpoints hit in the file of a script that a cell runs; a cell's own function has none."""
    user.script(notebook(driver.cells), NAME)
    shutil.copytree(EXAMPLES, user.folder / "examples")
    words = ours(typed("dask.md", -1)[0])  # where the page of Ray leads
    run = await launch(user, environment(driver.engine), words, **cluster)
    at = line(EXAMPLES / driver.script, driver.mark)
    path = str(user.folder / "examples" / driver.script)
    client = await joined(run, {path: [at]}, timeout=STARTS)
    found = await stopped(client, driver.function, len(driver.stopped))
    assert sorted(found) == [*driver.stopped]
    assert {each["line"] for each in found.values()} == {at}
    await client.request("setBreakpoints", {"source": {"path": path}, "breakpoints": []})
    for each in found.values():
        await client.request("continue", {"threadId": each["threadId"]}, timeout=LIMIT)
    (name,) = await stopped(client, "half", 1)
    assert await cast(client, name, "p number, part") == [(name, "(8, 4.0)")]
    await released(user, run, client)
    printed = outputs((user.folder / NAME).read_text("utf-8"))
    assert driver.result in printed
    assert "4.0" in printed


def notebook(cells: str) -> str:
    """A notebook with these cells, which empty lines before a `def` or an import divide."""
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"cell-{number}",
                    "metadata": {},
                    "execution_count": None,
                    "source": source,
                    "outputs": [],
                }
                for number, source in enumerate(cells.split("\n\n"))
            ],
        }
    )


def outputs(text: str) -> list[str]:
    """The lines that an executed notebook's cells have printed."""
    printed = (
        output["text"]
        for cell in json.loads(text)["cells"]
        for output in cell["outputs"]
        if output["output_type"] == "stream"
    )
    return "".join("".join(each) for each in printed).splitlines()


async def stopped(client: DapClient, function: str, count: int) -> dict[str, Json]:
    """Wait until so many ranks stand in a function, and no other one does anywhere."""

    async def look() -> dict[str, Json]:
        return {name: each for name, each in (await ranks(client)).items() if each["line"]}

    functions = [function] * count
    return await seen(
        look, lambda found: [each["function"] for each in found.values()] == functions
    )
