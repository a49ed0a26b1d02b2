"""Faults that others have reported, and healthy jobs; and no look changes the job.

Some of the runs of `make why-foreign`, whose score stands in docs/why.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.system import procfs
from tests.conftest import rounds
from tests.support.combinations import rest
from tests.support.processes.commands import Command, User
from tests.support.processes.waiting import until
from tests.why_foreign.__main__ import (
    ALL,
    RANKS,
    endpoint_of,
    is_alarm,
    launched,
    look,
    rank_pids,
    verdict_on,
    watch,
)
from tests.why_score.__main__ import engines
from tests.why_score.ranks import jobs

pytestmark = pytest.mark.timeout(300)
FAULTS: Final = (
    *("gather_to_another_rank", "groups_created_in_other_order", "key_nobody_sets"),
    *("killed_worker", "loader_forked_with_lock", "pool_forked_with_lock", "rank_given_twice"),
    *("send_nobody_receives", "update_group_left_out", "wrong_master_port"),
)
HEALTHY: Final = ("evaluation_on_rank_0", "uneven_batches")
LOOKS: Final = int(os.environ.get("DAP_MUX_LOOKS", "20"))
"""500 of them take half an hour."""
STEPS_OF_A_LOOK: Final = 10
SETTLES_S: Final = 60.0
MOST_GROWTH_KB: Final = 8 << 10
"""Above a job that nobody looks at, of the largest rank."""
TRAINS: Final = f"""\
import hashlib, os, pathlib, time
import torch
import torch.distributed as dist

place = pathlib.Path(os.environ["PLACE"])
torch.manual_seed(7)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
steps = torch.optim.SGD(model.parameters(), lr=0.01)


def allowed():
    text = (place / "allowed").read_text() if (place / "allowed").exists() else ""
    return int(text or 0)


def memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4


begins = 0
for step in range({LOOKS * STEPS_OF_A_LOOK}):
    while allowed() <= step:
        time.sleep(0.01)
    if step == {STEPS_OF_A_LOOK}:
        begins = memory()
    steps.zero_grad()
    model(torch.randn(8, 32)).square().sum().backward()
    steps.step()
weights = b"".join(each.detach().numpy().tobytes() for each in model.parameters())
name = f"rank-{{dist.get_rank()}}"
dist.barrier()
(place / name).write_text(f"{{hashlib.sha256(weights).hexdigest()}} {{memory() - begins}}")
"""


@pytest.fixture(autouse=True)
def _torch() -> None:
    python = jobs(engines())["gloo"].python
    if not python.exists():
        pytest.skip(f"{python}: run tests/launchers/install")


@pytest.mark.parametrize("name", [*FAULTS[:2], *map(rest, FAULTS[2:])])
async def test_rank_and_cause_are_right(name: str) -> None:
    (row,) = [one for one in ALL if one.file == f"{name}.py"]
    for one in await look("faults", row.file):
        assert not verdict_on(row, one["answer"]), one


@pytest.mark.parametrize("name", [*HEALTHY[:1], *map(rest, HEALTHY[1:])])
async def test_nobody_is_accused_in_a_healthy_job(name: str) -> None:
    found = await watch(f"{name}.py", rounds(8))
    assert not list(filter(is_alarm, found))


class Training:
    """A job whose steps are allowed one after the other, and what its ranks have left."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.place = user.folder / "left"
        self.place.mkdir()
        self.allowed = 0

    async def start(self) -> Command:
        script = self.user.script(TRAINS)
        run = await launched(self.user, script, PLACE=str(self.place))
        self.pids = rank_pids(script, run.user.environ["HOME"])
        return run

    def allow(self, steps: int) -> None:
        self.allowed += steps
        part = self.place / "part"
        part.write_text(str(self.allowed), "ascii")
        part.rename(self.place / "allowed")

    async def results(self) -> Mapping[str, list[str]]:
        def left() -> list[Path]:
            return [path for path in self.place.glob("rank-*") if path.read_text("ascii")]

        await until(lambda: len(left()) == RANKS, within=SETTLES_S + LOOKS, what="all results")
        return {path.name: path.read_text("ascii").split() for path in left()}


async def trained(folder: Path, *, looked_at: bool) -> Mapping[str, list[str]]:
    """Train, with a look every few steps or without; the digest of the weights, and the growth."""
    user = User(folder)
    try:
        job = Training(user)
        run = await job.start()
        if not looked_at:
            job.allow(LOOKS * STEPS_OF_A_LOOK)
            return await job.results()
        client = await run.client(all_answered=False)
        await client.handshake({"justMyCode": False})
        for at in range(LOOKS):
            job.allow(STEPS_OF_A_LOOK)
            if at % 2:
                await client.request("why", timeout=30.0)
            else:
                seen = await user.does("why", endpoint_of(job.pids), "--json")
                assert json.loads(seen.out)["verdict"]
        assert all(map(procfs.exists, job.pids))
        found = await job.results()
        stops: list[Any] = [one for one in client.events if one["event"] == "stopped"]
        assert not stops
        return found
    finally:
        await user.close()


@pytest.mark.timeout(120 + 8 * LOOKS)
@pytest.mark.rest
async def test_no_look_changes_the_job(tmp_path: Path) -> None:
    """The results are the same bit by bit, no rank is stopped, and none needs more memory."""
    alone, seen = [
        await trained(_folder(tmp_path, name), looked_at=name == "seen")
        for name in ("alone", "seen")
    ]
    assert {name: digest for name, (digest, _) in seen.items()} == {
        name: digest for name, (digest, _) in alone.items()
    }
    grown = max(int(growth) for _, growth in seen.values())
    assert grown - max(int(growth) for _, growth in alone.values()) < MOST_GROWTH_KB


def _folder(place: Path, name: str) -> Path:
    found = place / name
    found.mkdir()
    return found
