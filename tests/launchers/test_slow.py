"""`why --slow` of a real job of torch names who makes the others wait, and leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.launchers.launching import STARTS, launch, line, run_torch
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import Command, User
from tests.support.processes.mpi import mpi_environ

pytestmark = pytest.mark.timeout(300)
SCRIPT: Final = Path(__file__).parent / "scripts/slow_ranks.py"


async def job(user: User, comm: str, what: str) -> Command:
    """Start two ranks."""
    go_on = str(user.folder / "go")
    return await run_torch(user, ["--no-wait", "--comm", comm], SCRIPT, what, go_on)


async def why(user: User, wanted: str, *more: str) -> dict[str, Any]:
    """Ask until it is this verdict."""
    with anyio.fail_after(STARTS):
        while True:
            done = await user.does("why", "--slow", "--json", *more)
            body: dict[str, Any] = json.loads(done.out) if done.out.startswith("{") else {}
            if body.get("verdict") == wanted:
                return body


async def test_the_slow_loader_is_found_with_the_record_on_for_the_look_alone(user: User) -> None:
    run = await job(user, "off", "loads")
    await joined(run, name="editor", timeout=STARTS)
    body = await why(user, "slow-rank")
    (suspect,) = body["suspects"]
    assert suspect["ranks"] == "1"
    at = line(SCRIPT, "time.sleep(")
    assert (suspect["stack"][0]["name"], suspect["stack"][0]["line"]) == ("load", at)
    assert body["sentence"].endswith(f": at slow_ranks.py:{at} (load)")
    assert 0.05 < body["slow"]["delay"] < body["slow"]["period"]
    (user.folder / "go").touch()
    done = await run.ends(within=STARTS)
    assert done.code == 0
    assert done.out.count("left [false, 0]") == 2, done.out


async def test_a_rank_that_has_left_the_loop_is_named(user: User) -> None:
    await job(user, "time", "leaves")
    body = await why(user, "not-joined", "--attach")
    backward, barrier = line(SCRIPT, ".backward()"), line(SCRIPT, "dist.barrier()")
    assert body["sentence"] == (
        f"rank 1 has left the loop after 30 calls of all_reduce at slow_ranks.py:{backward} (train)"
        f": it waits in barrier at slow_ranks.py:{barrier} (main)"
    )


async def test_the_slow_rank_of_an_mpi4py_job_is_found(user: User, tmp_path: Path) -> None:
    """Recorded from its start: a communicator tells nobody how many calls it has had."""
    script, go = SCRIPT.with_name("slow_mpi.py"), user.folder / "go"
    for comm in ("off", "time"):
        words = ["run", "--no-wait", "--comm", comm, "--", "mpirun", "--oversubscribe", "-n", "2"]
        words += ["python", str(script), str(go)]
        run = await launch(user, environment("openmpi"), words, **mpi_environ(tmp_path))
        await joined(run, name="editor", timeout=STARTS)
        if comm == "off":
            with anyio.fail_after(STARTS):  # until the ranks have told
                while not _is_said(await why(user, "undecided"), "are not recorded from its start"):
                    pass
        else:
            body = await why(user, "slow-rank")
            (suspect,) = body["suspects"]
            at = line(script, "time.sleep(")
            assert (suspect["ranks"], suspect["stack"][0]["line"]) == ("1", at)
            assert body["sentence"].endswith(f": at slow_mpi.py:{at} (load)")
        go.touch()
        assert (await run.ends(within=STARTS)).code == 0
        go.unlink()


def _is_said(body: dict[str, Any], words: str) -> bool:
    return any(words in each for each in body["evidence"])
