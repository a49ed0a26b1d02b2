"""The example does what its walkthrough says, under the agent and a debugger on each rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from dap_mux.client import DapClient
from dap_mux.cluster.local import LocalCluster, LocalJob
from tests.real.ranks.agents import START_UP, neighbouring_ports

pytestmark = pytest.mark.real

EXAMPLE = Path(__file__).parents[3] / "examples" / "data_parallel.py"
QUICK = ("--seconds", "0")


def job_of(tmp_path: Path, world_size: int, *words: str, **settings: Any) -> LocalJob:
    with neighbouring_ports(2 * world_size) as row:
        base_port: int = row[0].getsockname()[1]
    return LocalJob(
        command=(str(EXAMPLE), *QUICK, *words),
        world_size=world_size,
        log_dir=tmp_path,
        base_port=base_port,
        **settings,
    )


def losses(log: str) -> list[float]:
    """What rank 0 reported, step by step."""
    steps = [line.split() for line in log.splitlines() if line.startswith("step")]
    return [float(words[3]) for words in steps]


def line_of(text: str) -> int:
    numbers = [n for n, line in enumerate(EXAMPLE.read_text().splitlines(), 1) if text in line]
    assert len(numbers) == 1, f"{text!r} should be there once: {numbers}"
    return numbers[0]


async def test_four_ranks_explode_after_step_5(tmp_path: Path) -> None:
    async with LocalCluster(job_of(tmp_path, 4, wait=False)) as cluster:
        with anyio.fail_after(START_UP):
            assert set((await cluster.wait_all()).values()) == {0}
        reported = losses(cluster.ranks[0].log_path.read_text())
    assert len(reported) == 20
    assert max(reported[3:6]) < 0.1
    assert min(reported[6:]) > 1e9


async def test_one_rank_learns(tmp_path: Path) -> None:
    async with LocalCluster(job_of(tmp_path, 1, wait=False)) as cluster:
        with anyio.fail_after(START_UP):
            assert await cluster.wait_all() == {0: 0}
        reported = losses(cluster.ranks[0].log_path.read_text())
    assert reported[-1] < 0.01


async def test_a_late_rank_holds_up_and_nothing_else(tmp_path: Path) -> None:
    late = {"DELAY_RANK": "1", "DELAY_MAX": "0.2"}
    async with LocalCluster(job_of(tmp_path, 2, "--steps", "4", wait=False, env=late)) as cluster:
        with anyio.fail_after(START_UP):
            assert set((await cluster.wait_all()).values()) == {0}
        assert len(losses(cluster.ranks[0].log_path.read_text())) == 4


async def test_a_debugger_finds_rank_2(tmp_path: Path) -> None:
    line = line_of("mean_grad = world.all_reduce_mean(grad)")
    async with LocalCluster(job_of(tmp_path, 4)) as cluster:
        clients = [await attached(await rank.ready(), line) for rank in cluster.ranks]
        stops = [await client.wait_event("stopped", timeout=START_UP) for client in clients]
        threads = [stop["threadId"] for stop in stops]
        assert await everywhere(clients, threads, "batch.unit") == ["'m'", "'m'", "'mm'", "'m'"]
        loss = [float(text) for text in await everywhere(clients, threads, "loss")]
        assert [round(value, 4) for value in loss] == [0.0904, 0.055, 340268.3293, 0.0469]

        for client, thread in zip(clients, threads, strict=True):
            await client.request("next", {"threadId": thread})
        for client in clients:
            await client.wait_event("stopped", timeout=START_UP)
        assert len(set(await everywhere(clients, threads, "mean_grad"))) == 1

        for client, thread in zip(clients, threads, strict=True):
            await client.request("continue", {"threadId": thread})
        with anyio.fail_after(START_UP):
            assert set((await cluster.wait_all()).values()) == {0}
        for client in clients:
            await client.close()


async def attached(record: Any, line: int) -> DapClient:
    client = await DapClient.connect(record.host, record.port)
    at_step_5 = {str(EXAMPLE): [{"line": line, "condition": "step == 5"}]}
    await client.handshake({"justMyCode": True}, breakpoints=at_step_5, timeout=START_UP)
    return client


async def everywhere(clients: list[DapClient], threads: list[int], expression: str) -> list[str]:
    """The value of `expression` in each client's stopped frame."""
    values = []
    for client, thread in zip(clients, threads, strict=True):
        trace = await client.request("stackTrace", {"threadId": thread})
        frame = trace["stackFrames"][0]["id"]
        answer = await client.request("evaluate", {"expression": expression, "frameId": frame})
        values.append(answer["result"])
    return values
