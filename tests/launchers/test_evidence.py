"""What ranks of a real torch and a real MPI tell of themselves while they wait for each other."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec
import pytest

from dap_mux.pure.insight.why.evidence import Sample, Thread
from dap_mux.session.session import injected_sources
from tests.launchers.tools import environment
from tests.support.processes.mpi import mpi_environ

pytestmark = pytest.mark.timeout(120)
SCRIPTS: Final = Path(__file__).parent / "scripts"
WITHIN: Final = 60.0  # s; not a wait


class Ranks:
    """Processes that answer a line by one of evidence; they end with the test."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self.sources = folder / "sources.json"
        self.sources.write_text(json.dumps(injected_sources().all), "utf-8")
        self._ends = ends

    def start(self, *command: str | Path, **environ: str) -> subprocess.Popen[str]:
        """Start one."""
        process = subprocess.Popen(
            [*map(str, command)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environ},
            text=True,
        )
        self._ends.enter_context(process)
        self._ends.callback(process.terminate)
        return process


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Ranks]:
    with ExitStack() as ends:
        yield Ranks(tmp_path, ends)


def evidence(process: subprocess.Popen[str], holds: Callable[[Thread], bool]) -> Sample:
    """Ask until this holds for the main thread."""
    assert process.stdin is not None
    assert process.stdout is not None
    deadline = time.monotonic() + WITHIN
    while True:
        process.stdin.write("\n")
        process.stdin.flush()
        sample = msgspec.json.decode(process.stdout.readline(), type=Sample)
        if holds(sample.threads[0]):
            return sample
        assert time.monotonic() < deadline, sample.threads[0]


def is_in(function: str) -> Callable[[Thread], bool]:
    return lambda thread: thread.call is not None and thread.call.function.endswith(function)


@pytest.mark.parametrize("size", ["2000", "0"])
def test_ranks_of_torch(ranks: Ranks, tmp_path: Path, size: str) -> None:
    python = environment("torch") / "python"
    script, meeting = SCRIPTS / "torch_evidence.py", tmp_path / "meeting"
    environ = {"TORCH_FR_BUFFER_SIZE": size, "OMP_NUM_THREADS": "1"}
    waiting, absent = (
        ranks.start(python, script, str(rank), meeting, ranks.sources, **environ)
        for rank in range(2)
    )
    told = evidence(waiting, is_in(".wait"))
    main = told.threads[0]
    assert main.call is not None
    assert main.call.function == "torch.distributed.distributed_c10d.Work.wait"
    assert told.functions[main.frames[-1][1]] == "all_reduce"
    assert told.world_rank == 0
    other = evidence(absent, is_in("acquire"))
    assert other.world_rank == 1
    if size == "0":
        assert (told.recorder, told.collectives) == ("off", [])
        return
    assert told.recorder == other.recorder == "on"
    done, waits = told.collectives
    assert (done.group, done.number, done.state) == ("default_pg", 1, "completed")
    assert (waits.group, waits.number, waits.kind) == ("pair/1", 1, "all_reduce")
    assert (waits.members, waits.sizes, waits.dtypes) == ([0, 1], [[3, 2]], ["Float"])
    assert (waits.state, waits.p2p, waits.timeout) == ("scheduled", False, 1800.0)
    assert [one.group for one in other.collectives] == ["default_pg"]


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_ranks_of_mpi(ranks: Ranks, name: str) -> None:
    programs = environment(name)
    mpirun, python, script = programs / "mpirun", programs / "python", SCRIPTS / "mpi_evidence.py"
    environ = mpi_environ(ranks.sources.parent)
    process = ranks.start(mpirun, "-n", "2", python, script, ranks.sources, **environ)
    told = evidence(process, is_in(".recv"))
    main = told.threads[0]
    assert main.call is not None
    assert main.call.text == "comm.recv(source=left, tag=7)"
    assert main.call.function == "mpi4py.MPI.Comm.recv"
    assert main.call.arguments == {"source": 1, "tag": 7}
    assert main.call.of == {"rank": 0, "size": 2, "members": [0, 1]}
    assert (told.world_rank, told.recorder) == (0, "")
