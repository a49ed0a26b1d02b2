"""Real torch under torchrun: what a pause does to collectives, and what is done about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.pure.insight.timeouts import RAISED_TIMEOUT_S
from dap_mux.pure.remote import look_at_timeouts
from dap_mux.rank.injected import source_of
from tests.doctor.conftest import Doctor
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.hosts.private_network import logged
from tests.support.processes import proc_net
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]
SCRIPT: Final = str(Path(__file__).parent / "scripts" / "short_time_outs.py")
LATE: Final = line_of(SCRIPT, "late")
SHORT: Final = 6.0  # s, as the script has it
LOOK: Final = look_at_timeouts(source_of("timeout_probe"), extends=False)
RANKS: Final = 4
START: Final = 120.0  # s for four imports of torch on a busy machine


class Job:
    """The job under torchrun; `port` is rank 0's."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self._folder = folder

    def go(self, what: str) -> None:
        """Let the ranks go on."""
        (self._folder / what).touch()

    @property
    def output(self) -> str:
        """What it has said so far."""
        return (self._folder / "output").read_text("utf-8")


@asynccontextmanager
async def torchrun(folder: Path) -> AsyncIterator[Job]:
    """Four ranks that listen, and wait to be attached to; all is ended with the block."""
    port, rendezvous = proc_net.free_ports(RANKS), proc_net.free_ports(1)
    words = [str(environment("torch") / "torchrun"), f"--nproc-per-node={RANKS}"]
    words += [f"--master-port={rendezvous}", SCRIPT, str(port), str(folder)]
    process = await logged(folder / "output", *words)
    try:
        for number in range(port, port + RANKS):
            await until(lambda: proc_net.listens(number), within=START, what=f"{number} listens")  # noqa: B023
        yield Job(process, port, folder)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


class Clocks:
    """What the ranks say of their time-outs, asked through the session."""

    def __init__(self, client: DapClient) -> None:
        self._client = client

    async def ask(self, expression: str) -> dict[str, Any]:
        """Values by rank; a rank that does not answer is left out."""
        values = {}
        for number in range(RANKS):
            asked = {"ranks": str(number), "command": f"p {expression}", "timeout": 5}
            body = await self._client.request("cast", asked, timeout=LIMIT)
            values.update({one["ranks"]: one["value"] for one in body["results"]})
        return values

    async def are(self, seconds: float) -> None:
        """Wait until every rank's default time-out is this."""
        wanted = [str(float(seconds))] * RANKS
        await self.until(TIME_OUT, lambda values: list(values.values()) == wanted)

    async def until(self, expression: str, holds: Callable[[dict[str, Any]], bool]) -> None:
        """Ask until the answers are so."""
        values: dict[str, Any] = {}
        for _ in range(600):
            values = await self.ask(expression)
            if holds(values):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"{expression[:80]}: {values}")


GROUP: Final = "__import__('torch').distributed.distributed_c10d._get_default_group()"
TIME_OUT: Final = (
    f"{GROUP}._get_backend(__import__('torch').device('cpu')).options._timeout.total_seconds()"
)


def said(client: DapClient) -> list[str]:
    return [body["output"] for body in bodies(client, "output") if "dap-mux: " in body["output"]]


async def test_a_pause_that_outlasts_the_time_out(user: User, tmp_path: Path) -> None:
    """Rank 2 stands before a sum: the others' wait is told of; the next one is given its time."""
    folder = tmp_path / "job"
    folder.mkdir()
    async with torchrun(folder) as job:
        attach = await user.start("attach", f"127.0.0.1:{job.port}+{RANKS}")
        stop = {SCRIPT: [{"line": LATE}]}
        client = await joined(attach, stop, timeout=START)
        clocks = Clocks(client)
        await clocks.until(LOOK, lambda values: waits_longer(values, 0))
        job.go("late")
        await client.wait_event("stopped", timeout=LIMIT)

        # The others wait already: that cannot be changed any more, and is told.
        await client.wait_for(lambda: len(said(client)) == 2, timeout=LIMIT, what="two warnings")
        extended, endangered = said(client)
        assert "torch's timeouts (4 min) are raised to 24 h on ranks 0-3" in extended
        assert "ranks 0-1,3 wait in all_reduce, whose timeout of 4 min can no longer" in endangered
        assert "torchrun then ends all ranks" in endangered
        await clocks.are(RAISED_TIMEOUT_S)
        clock = await Doctor(user).only("clock")
        assert clock["ranks"] == "0-1,3"
        assert "wait in all_reduce, whose timeout of 4 min" in clock["evidence"][0]

        # All run on, and rank 2 to its next stop before a sum of 6 s; the others come to it later.
        thread = {"threadId": (await stopped_thread(client))}
        await client.request("continue", thread, timeout=LIMIT)
        # Rank 2 has left its first stop behind, so that what is seen is the second one.
        await until((folder / "short-2").exists, within=LIMIT, what="rank 2 after the first sum")
        await stopped_thread(client)
        await clocks.are(RAISED_TIMEOUT_S)
        job.go("short")
        await clocks.until(LOOK, lambda values: waits_longer(values, SHORT * 1.5))
        await client.request("continue", thread, timeout=LIMIT)
        await until(lambda: job.output.count("sum 60") == RANKS, within=LIMIT, what="the sum")
        await clocks.are(SHORT)
        assert await Doctor(user).causes() == []
        assert len(said(client)) == 2
        job.go("end")
        assert await asyncio.wait_for(job.process.wait(), LIMIT) == 0, job.output
        assert job.output.count("sum 6\n") == RANKS


async def test_a_rank_that_is_let_run_alone_waits_for_the_others(
    user: User, tmp_path: Path
) -> None:
    """All stand behind the first sum; rank 0 goes on to the second, and it is told who holds it."""
    folder = tmp_path / "job"
    folder.mkdir()
    after = line_of(SCRIPT, "after the sum")
    async with torchrun(folder) as job:
        attach = await user.start("attach", f"127.0.0.1:{job.port}+{RANKS}")
        client = await joined(attach, {SCRIPT: [after]}, attach={}, timeout=START)
        job.go("late")
        job.go("short")
        entries = await listed(client, "line", *[after] * RANKS)
        alone = {"threadId": entries[0]["threadId"], "singleThread": True}
        await client.request("continue", alone, timeout=LIMIT)
        told = await client.wait_event(
            "output", lambda body: "wait" in body["output"], timeout=LIMIT
        )
        assert told["output"] == (
            "dap-mux: rank 0 waits in all_reduce #3 of group default_pg for ranks 1-3, which stand "
            f"at short_time_outs.py:{after}; `cast 1-3 n` lets all on\n"
        )
        await client.request("release", {"ranks": "all"}, timeout=LIMIT)
        job.go("end")
        assert await asyncio.wait_for(job.process.wait(), LIMIT) == 0, job.output


async def stopped_thread(client: DapClient) -> int:
    entries = await listed(client, "state", "running", "running", "stopped", "running")
    return int(entries[2]["threadId"])


def waits_longer(values: dict[str, Any], seconds: float) -> bool:
    """Whether the three others wait in a sum for longer than this."""
    ages = [value.partition('"all_reduce", ')[2].split(", ")[1:2] for value in values.values()]
    return sum(bool(age) and float(age[0].rstrip("]")) > seconds for age in ages) == RANKS - 1
