"""Ranks started on this machine: what they are given, how they end, what they survive."""

# ruff: noqa: ASYNC222  (nothing else waits for this event loop)

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from dap_mux.cluster.job import RankEnded, RankProcess
from dap_mux.cluster.local import LocalCluster, LocalJob, job_exit_code
from dap_mux.pure.errors import UsageError
from dap_mux.system.procfs import runs
from tests.real.ranks.agents import START_UP, neighbouring_ports
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy]

MakeJob = Callable[..., LocalJob]


@pytest.fixture
def make_job(tmp_path: Path) -> MakeJob:
    """`make_job(source, world_size=2, ...)`: a job of one script on ports that are free."""
    with neighbouring_ports(4) as row:
        base_port: int = row[0].getsockname()[1]

    def make(source: str, **settings: Any) -> LocalJob:
        script = tmp_path / "script.py"
        script.write_text(source)
        fixed: dict[str, Any] = {
            "command": (str(script),),
            "world_size": 2,
            "log_dir": tmp_path / "logs",
            "base_port": base_port,
        }
        return LocalJob(**{**fixed, **settings})

    return make


def log_says(rank: RankProcess, words: str) -> Callable[[], bool]:
    return lambda: words in rank.log_path.read_text()


def first_that_is_given() -> int:
    """The lowest port that the system gives to outgoing connections."""
    return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


@pytest.mark.quick
async def test_ranks_get_their_places_ports_and_logs(make_job: MakeJob) -> None:
    job = make_job(
        "import json, os; print('ENV', json.dumps(dict(os.environ)))",
        world_size=3,
        wait=False,
        env={"MARK": "mine", "RANK": "99"},
    )
    async with LocalCluster(job) as cluster:
        records = [await rank.ready() for rank in cluster.ranks]
        assert await cluster.wait_all() == {0: 0, 1: 0, 2: 0}
    assert [one.endpoint for one in records] == [f"127.0.0.1:{job.base_port + i}" for i in range(3)]
    assert [one.pid for one in records] == [rank.pid for rank in cluster.ranks]
    assert [(one.rank, one.world_size, one.ready) for one in records] == [
        (rank, 3, True) for rank in range(3)
    ]
    ports = set()
    for number in range(3):
        text = (job.log_dir / f"rank-{number}.log").read_text()
        environ = json.loads(text.partition("ENV ")[2])
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MARK")
        expected = [str(number), str(number), "3", "3", "127.0.0.1", "mine"]
        assert [environ[name] for name in names] == expected
        assert environ["PYTHONUNBUFFERED"] == "1"
        ports.add(environ["MASTER_PORT"])
    assert len(ports) == 1
    port = int(ports.pop())
    assert port < first_that_is_given()  # to one who connects, before rank 0 listens
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))


async def test_each_exit_code_is_told_and_the_first_failure_is_the_jobs(make_job: MakeJob) -> None:
    source = (
        "import os, pathlib, signal, time\n"
        "rank, flag = int(os.environ['RANK']), pathlib.Path(os.environ['FLAG'])\n"
        "while rank < 2 and not flag.exists(): time.sleep(0.01)\n"
        "if rank == 2: os.kill(os.getpid(), signal.SIGABRT)\n"
        "raise SystemExit(3 * rank)\n"
    )
    flag = make_job("").log_dir.parent / "flag"
    job = make_job(source, world_size=3, wait=False, env={"FLAG": str(flag)})
    async with LocalCluster(job) as cluster:
        assert await cluster.ranks[2].wait() == -signal.SIGABRT
        assert cluster.ranks[0].exit_code is None
        flag.touch()
        codes = await cluster.wait_all()
    assert codes == {0: 0, 1: 3, 2: -signal.SIGABRT}
    assert cluster.finished[0] == 2
    assert job_exit_code(codes, cluster.finished) == 128 + signal.SIGABRT


@pytest.mark.parametrize(
    ("codes", "finished", "code"),
    [
        ({0: 0, 1: 0}, [], 0),
        ({0: 0, 1: 4, 2: 5}, [], 4),
        ({0: 0, 1: 4, 2: 5}, [0, 2, 1], 5),
        ({0: 0, 1: 4}, [0], 4),
        ({0: -9}, [0], 137),
        ({}, [], 0),
    ],
)
def test_the_jobs_exit_code(codes: dict[int, int], finished: list[int], code: int) -> None:
    assert job_exit_code(codes, finished) == code


async def test_a_rank_that_ends_before_it_listens_is_explained(make_job: MakeJob) -> None:
    job = make_job("", command=("no\x1b[31m-such.py",))
    async with LocalCluster(job) as cluster:
        with anyio.fail_after(START_UP), pytest.raises(RankEnded) as caught:
            await cluster.ranks[1].ready()
    said = str(caught.value)
    assert said.startswith("rank 1 exited with 2 before it listened")
    assert "rank-1.log" in said
    assert "-such.py" in said
    assert "\x1b" not in said


async def test_a_python_that_is_not_there_is_the_users_mistake(make_job: MakeJob) -> None:
    with pytest.raises(UsageError, match="cannot start rank 0: /no/python: No such file"):
        async with LocalCluster(make_job("", python="/no/python")):
            pytest.fail("it started")


async def test_a_port_in_use_is_stepped_over(make_job: MakeJob) -> None:
    job = make_job("")
    with socket.create_server(("127.0.0.1", job.base_port)):
        async with LocalCluster(job) as cluster:
            ports = [(await rank.ready()).port for rank in cluster.ranks]
    assert ports == [job.base_port + 2, job.base_port + 1]


# How they end


async def test_a_rank_leads_a_group_that_no_terminal_reaches(make_job: MakeJob) -> None:
    async with LocalCluster(make_job("", world_size=1)) as cluster:
        pid = cluster.ranks[0].pid
        assert os.getpgid(pid) == pid
        assert os.getsid(pid) == pid


async def test_the_end_of_the_block_ends_every_rank_that_waits(make_job: MakeJob) -> None:
    async with LocalCluster(make_job("", world_size=3)) as cluster:
        for rank in cluster.ranks:
            await rank.ready()
    assert [rank.exit_code for rank in cluster.ranks] == [-signal.SIGTERM] * 3
    assert not any(runs(rank.pid) for rank in cluster.ranks)


async def test_stop_kills_who_does_not_listen_and_the_children_too(make_job: MakeJob) -> None:
    source = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('child', child.pid, '.')\n"
        "time.sleep(600)\n"
    )
    async with LocalCluster(make_job(source, wait=False)) as cluster:
        for rank in cluster.ranks:
            await until(log_says(rank, " ."), within=START_UP, what="the child")
        children = [
            int(rank.log_path.read_text().partition("child ")[2].split()[0])
            for rank in cluster.ranks
        ]
        assert all(map(runs, children))
        await cluster.stop(grace=0.4)
        assert [rank.exit_code for rank in cluster.ranks] == [-signal.SIGKILL] * 2
    await until(
        lambda: not any(map(runs, children)), within=START_UP, what="the end of the children"
    )


async def test_an_error_in_the_block_ends_the_ranks_and_comes_out_as_it_is(
    make_job: MakeJob,
) -> None:
    cluster = LocalCluster(make_job(""))
    with pytest.raises(ZeroDivisionError):
        async with cluster:
            _ = 1 / 0
    assert not any(runs(rank.pid) for rank in cluster.ranks)


async def test_a_cancelled_block_ends_the_ranks(make_job: MakeJob) -> None:
    cluster = LocalCluster(make_job(""))
    with anyio.CancelScope() as scope:
        async with cluster:
            scope.cancel()
            await cluster.wait_all()
    assert scope.cancelled_caught
    assert not any(runs(rank.pid) for rank in cluster.ranks)


LATE_WORD = (
    "import os, pathlib, time\n"
    "flag = pathlib.Path(os.environ['FLAG'])\n"
    "while not flag.exists(): time.sleep(0.01)\n"
    "print('x' * 100_000)\n"
    "print('to the end')\n"
)


async def test_ranks_can_be_left_to_run_on(make_job: MakeJob, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    job = make_job(LATE_WORD, wait=False, env={"FLAG": str(flag)})
    async with LocalCluster(job) as cluster:
        for rank in cluster.ranks:
            await rank.ready()
        cluster.leave_running()
    assert all(runs(rank.pid) for rank in cluster.ranks)
    flag.touch()
    for rank in cluster.ranks:
        await until(log_says(rank, "to the end"), within=START_UP, what="the program's last word")
        os.waitpid(rank.pid, 0)
