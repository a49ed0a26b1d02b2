"""`why --from DIR` on what real ranks of torch have left: dumps, error.json, logs."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.launchers.tools import environment
from tests.support.processes.commands import User
from tests.support.processes.proc_net import free_ports

pytestmark = pytest.mark.timeout(180)
SCRIPT: Final = Path(__file__).parent / "scripts" / "torch_dumps.py"
RANKS: Final = 3
WITHIN: Final = 120.0  # s; not a wait


def leaves(folder: Path, how: str, **env: str) -> None:
    """Let three ranks run to their ends; rank 1 is the culprit."""
    python = environment("torch") / "python"
    shared = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_ports(1)),
        "WORLD_SIZE": str(RANKS),
        "OMP_NUM_THREADS": "1",
        **env,
    }
    with ExitStack() as ends:
        ranks = []
        for rank in range(RANKS):
            log = ends.enter_context((folder / f"worker-{rank}.log").open("wb"))
            process = subprocess.Popen(
                [str(python), str(SCRIPT), how, str(folder)],
                env={**shared, "RANK": str(rank)},
                stdout=log,
                stderr=log,
            )
            ranks.append(ends.enter_context(process))
            ends.callback(process.kill)
        for process in ranks:
            process.wait(WITHIN)


async def verdict(user: User, folder: Path) -> dict[str, Any]:
    done = await user.does("why", "--from", str(folder), "--json")
    assert done.out, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.parametrize("how", ["pickle", "json"])
async def test_dumps_of_gloo(user: User, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    leaves(folder, how)
    found = await verdict(user, folder)
    assert (found["verdict"], found["suspects"][0]["ranks"]) == ("not-joined", "1"), found
    assert found["suspects"][1]["waitingFor"] == "all_reduce #2 of group default_pg"
    if how == "pickle":
        assert "torch_dumps.py" in found["suspects"][1]["stack"][2]["path"]
        assert "(beyond)" in found["evidence"][1]
    written = json.dumps(found)
    assert "time-out was 30 min" in written


async def test_fingerprints_in_logs(user: User, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    leaves(folder, "mismatch", TORCH_DISTRIBUTED_DEBUG="DETAIL")
    found = await verdict(user, folder)
    assert (found["verdict"], found["suspects"][0]["ranks"]) == ("mismatched-collective", "1")
    assert "calls barrier" in found["sentence"]


async def test_the_error_of_one_rank(user: User, tmp_path: Path) -> None:
    folder = tmp_path / "errors"
    folder.mkdir()
    leaves(folder, "fail")
    found = await verdict(user, folder)
    assert (found["verdict"], found["suspects"][0]["ranks"]) == ("process-gone", "1")
    assert found["sentence"] == "rank 1 has ended with ValueError: shard-1 is empty"
