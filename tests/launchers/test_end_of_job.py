"""A job that fails ends with one block: rank 2 was first, and why; with each launcher.

All kinds with all launchers are `make test-crashes`; here each kind has one launcher.
"""

from __future__ import annotations

import json
import os
import re
import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest

from tests.launchers.launching import PAGE, STARTS, documented, launch, line
from tests.launchers.tools import environment
from tests.support.combinations import rest
from tests.support.hosts.private_network import possible
from tests.support.hosts.slurm_cluster import slurm_cluster
from tests.support.processes.commands import User, user
from tests.support.processes.mpi import mpi_environ
from tests.support.processes.proc_net import free_ports

__all__ = ["user"]

pytestmark = pytest.mark.timeout(300)
PROGRAM: Final = Path(__file__).with_name("scripts") / "crashes.py"


KINDS: Final = {
    "value": ("ValueError: no rows in a batch of 0", 'raise ValueError(f"'),
    "index": ("IndexError: list index out of range", "batch[number] += 1"),
    "library": ("ValueError: invalid literal for int() with base 10: 'one'", 'int("one"'),
    "assert": ("AssertionError: empty batch", "assert batch"),
    "recursion": ("RecursionError: maximum recursion depth exceeded", "return deeper("),
    "cuda": (
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        'raise RuntimeError("CUDA',
    ),
    "memory": ("MemoryError", "bytearray("),
    "thread": ("os._exit(7)", "target=lambda"),
    "exit": ("sys.exit(1)", "sys.exit(1)"),
    "_exit": ("os._exit(3)", "os._exit(3)"),
    "segfault": ("Segmentation fault", "signal.SIGSEGV"),
    "abort": ("Aborted", "os.abort()"),
    "kill": ("", ""),
    "import": ("ModuleNotFoundError: No module named 'no_such_package'", "import no_such_package"),
    "syntax": ("SyntaxError: invalid syntax", ""),
    "port": ("OSError: [Errno 98] Address already in use", "socket.create_server(taken"),
    "config": ("", ""),
}
"""What rank 2 ends of: words of the block, and of its line, if the block names one."""


@dataclass(frozen=True)
class Way:
    """How a job is started: the engine's environment, and the words before the program."""

    engine: str
    words: tuple[str, ...]
    style: str = "torch"
    dials: bool = False


WAYS: Final = {
    "torchrun": Way("torch", ("--", "torchrun", "--standalone", "--nproc-per-node", "4")),
    "mpirun": Way(
        "openmpi", ("--", "mpirun", "--oversubscribe", "-n", "4", "python", "-m", "mpi4py"), "mpi"
    ),
    "run": Way("torch", ("-n", "4"), "sockets"),
    "spawn": Way("torch", ("--", "python"), "spawn"),
}
ELSE: Final = {
    "accelerate": Way(
        "mpich",
        (
            *("--", "accelerate", "launch", "--cpu", "--main_process_port", "{port}"),
            *("--mpirun_hostfile", "hosts", "--num_processes", "4"),
        ),
    ),
    "lightning": Way("torch", ("--", "python"), "lightning"),
    "srun": Way("torch", ("--", "srun", "--kill-on-bad-exit", "-N1", "-n4", "python"), "sockets"),
}
"""As slow as each is, each kind is tried with these in `make test-crashes` alone."""
HOSTS: Final = """\
there="$1"; shift
for RANK in 0 1 2 3; do
    export RANK WORLD_SIZE=4
    if [ $RANK -lt 2 ]; then python "$@" &
    else unshare -u sh -c 'hostname node2; exec "$@"' sh env $there python "$@" &
    fi
done
wait
exit 1
"""
"""Ranks 2 and 3 run on a host of another name; `there`: what is different on it."""
UNSHARED: Final = "DAP_MUX_RENDEZVOUS=/nonexistent"
_HOSTS: Final = ("--", "sh", "hosts.sh")
ON_HOSTS: Final = {
    "shared": Way("torch", (*_HOSTS, "SHARED=1"), "sockets"),
    "shared-dial": Way("torch", ("--dial", *_HOSTS, "SHARED=1"), "sockets"),
    "unshared-dial": Way("torch", ("--dial", *_HOSTS, UNSHARED), "sockets"),
    "unshared": Way("torch", (*_HOSTS, UNSHARED), "sockets"),
}
# The ranks of `run -n` go on without one that never comes.
EARLY: Final = ("import", "syntax", "port", "config")
ONE_EACH = [
    (kind, "torchrun" if kind in EARLY else way)
    for kind, way in zip(KINDS, cycle(["mpirun", "run"]), strict=False)
]
ONE_EACH += [("value", "torchrun"), ("kill", "torchrun"), ("assert", "spawn")]
LAUNCHERS: Final = {**WAYS, **ELSE}
ONE_EACH += [("value", "accelerate"), ("_exit", "srun")]
ALL: Final = [
    (kind, way) if (kind, way) in ONE_EACH else rest(kind, way)
    for kind in KINDS
    for way in LAUNCHERS
    if way != "run" or kind not in EARLY
]


@pytest.mark.parametrize(("kind", "way"), ALL)
async def test_the_block_names_the_first_rank_and_why(
    user: User, kind: str, way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    end, err = await failed(user, kind, way, tmp_path_factory.mktemp("cluster"))
    first = end["first"]
    assert first["ranks"] == "rank 2", err
    how, mark = KINDS[kind]
    assert how in first["how"], err
    if mark:
        assert first["place"]["line"] == line(PROGRAM, mark), err
    block = err[err.index("the job failed: ") :].splitlines()
    assert block[0].startswith(f"the job failed: exit code {end['code']}; first: rank 2, "), err
    assert block[-1].startswith("  next    dap-mux run --"), err
    for other in end["others"]:
        assert "2" not in other["ranks"], err


on_hosts = pytest.mark.skipif(not possible(), reason="only root may name a host")


@on_hosts
@pytest.mark.parametrize("way", ["shared", "shared-dial"])
async def test_ranks_of_another_host_that_shares_the_folder(
    user: User, way: str, tmp_path: Path
) -> None:
    end, err = await failed(user, "value", way, tmp_path)
    first = end["first"]
    assert (first["ranks"], first["host"]) == ("rank 2", "node2"), err
    assert first["place"]["line"] == line(PROGRAM, KINDS["value"][1]), err
    assert (end["missing"], end["unseen"]) == ("", {}), err


@on_hosts
@pytest.mark.parametrize("way", ["unshared", "unshared-dial"])
async def test_ranks_of_another_host_that_leave_their_files_there(
    user: User, way: str, tmp_path: Path
) -> None:
    """Without `--dial` the session never hears of them; they run on without a debugger."""
    end, err = await failed(user, "value", way, tmp_path)
    first = end["first"]
    assert (first["ranks"], first["certain"]) == ("ranks 2-3", False), err
    kept = [*user.folder.glob("dap-mux-ranks-kept-*/*.end")]
    if way == "unshared":
        assert "rank 2 of 4 runs on node2, out of the session's reach" in err
    else:
        assert [*end["unseen"].values()] == ["ranks 2-3"], err
        records = [json.loads(each.read_text("utf-8")) for each in kept]
        assert "ValueError" in {record["type"] for record in records}


async def test_a_launcher_that_fails_itself(user: User) -> None:
    """Its port is taken, and no rank ever starts."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["torchrun", "--nproc-per-node", "2", "--master-port", port, str(PROGRAM)]
        run = await launch(user, environment("torch"), ["run", "--", *words, "value", "torch"])
        done = await run.ends(within=STARTS)
    found = re.search(r"the job failed: exit code 1; first: torchrun, (.*)", done.err)
    assert found is not None, done.err
    assert "address already in use" in found[1]
    assert "none of its Python processes was a rank" not in done.err


async def test_the_block_of_the_page(user: User) -> None:
    """What docs/launchers.md shows is what its command prints with nobody attached."""
    shown = re.search(r"```text\n(dap-mux: the job failed.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    words = documented("--fail 2")
    run = await launch(user, environment("torch"), [words[0], "--no-wait", *words[1:]])
    done = await run.ends(within=STARTS)
    block = done.err[done.err.index("dap-mux: the job failed") :]
    assert kinds_of(block.replace(f"{user.folder}/", "")) == kinds_of(shown[1])


def kinds_of(block: str) -> list[str]:
    """The lines without numbers, and without who met the closed connection and who SIGTERM."""
    lines = [re.sub(r"[\d.]+ m?s later|\d+", "#", line) for line in block.splitlines()]
    return [line for line in lines if not line.startswith("  then ")]


async def failed(user: User, kind: str, way: str, base: Path) -> tuple[dict[str, Any], str]:
    """Run the job to its end; what `--end-json` says, and the terminal."""
    started = {**LAUNCHERS, **ON_HOSTS}[way]
    paths = [str(environment("torch")), str(environment(started.engine)), user.environ["PATH"]]
    path = os.pathsep.join(paths[started.engine != "mpich" :])
    (user.folder / "hosts").write_text("localhost:4\n", "utf-8")
    (user.folder / "hosts.sh").write_text(HOSTS, "utf-8")
    environ = {
        **mpi_environ(user.folder),
        "PATH": path,
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_ports(1)),
        "DAP_MUX_BASE_PORT": str(free_ports(8)),
    }
    file = user.folder / "end.json"
    given = [word.format(port=environ["MASTER_PORT"]) for word in started.words]
    words = ("run", "--no-wait", "--end-json", str(file), *given)
    async with AsyncExitStack() as stack:
        if way == "srun":
            if not possible():
                pytest.skip("only root may make hosts with own networks")
            cluster = await stack.enter_async_context(slurm_cluster(base))
            environ |= cluster.environ
        run = await user.start(*words, str(PROGRAM), kind, started.style, env=environ)
        done = await run.ends(within=STARTS)
    assert done.code not in (0, 125), done.err
    await user.nothing_is_left(within=STARTS)
    end: dict[str, Any] = json.loads(file.read_text("utf-8"))
    assert end["code"] == done.code
    return end, done.err
