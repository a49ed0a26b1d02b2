"""`--comm time`: every communication call of a real torch is recorded, and `why` knows by it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.launchers.launching import STARTS, line, run_torch
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.combinations import rest
from tests.support.processes.commands import User
from tests.support.processes.mpi import mpi_environ

pytestmark = pytest.mark.timeout(300)
SCRIPTS: Final = Path(__file__).parent / "scripts"
CALLS: Final = int(os.environ.get("DAP_MUX_COMM_CALLS", "4000"))
"""How many small collectives the endurance run makes; a million were asked of a release."""
STEPS: Final = int(os.environ.get("DAP_MUX_COMM_STEPS", "200"))
MODE: Final = os.environ.get("DAP_MUX_COMM_MODE", "time")
ENDURES_S: Final = 240 + (CALLS + 10 * STEPS) / 100
"""As long as a job may take at a hundred calls a second; it is no wait."""
MOST_GROWTH: Final = 64
"""MiB, after the first tenth. Each work that is kept for good would add a kilobyte."""
KINDS: Final = [
    *("all_reduce", "all_reduce", "barrier", "broadcast", "all_gather", "all_gather"),
    *("all_reduce", "all_gather_into_tensor", "reduce", "all_reduce"),
    "monitored_barrier",
]
WAYS: Final = {
    *("ddp_with_buckets", "ddp_with_no_sync", "ddp_with_unused_parameters"),
    *("fsdp2", "tensor_parallel", "fsdp2_and_tensor_parallel", "dtensor"),
    *("functional_collectives", "object_collectives", "sends_and_receives"),
}
BACKWARD: Final = SCRIPTS / "comm_backward.py"


def torchrun(
    script: str, *arguments: str, within: float = 240.0, ranks: int = 2, **environ: str
) -> str:
    """Run a script in some ranks; return what they have printed."""
    programs = environment("torch")
    python = os.environ.get("DAP_MUX_COMM_PYTHON") or str(programs / "python")
    command = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    done = subprocess.run(
        [*command, str(ranks), str(SCRIPTS / script), *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environ},
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told(output: str, begin: str) -> list[Any]:
    """What the ranks have printed as JSON behind a word, in the order of their lines."""
    return [
        json.loads(each.partition(" ")[2])
        for each in output.splitlines()
        if each.startswith(f"{begin} ")
    ]


async def why(user: User, wanted: str) -> dict[str, Any]:
    """Ask until it is this verdict, by ranks that tell of themselves."""
    with anyio.fail_after(STARTS):
        while True:
            done = await user.does("why", "--json")
            body: dict[str, Any] = json.loads(done.out) if done.out.startswith("{") else {}
            if body.get("verdict") == wanted and "no debugger is attached" not in done.err:
                return body


def test_each_call_is_seen_once_and_its_record_goes_without_a_trace() -> None:
    output = torchrun("comm_calls.py")
    kinds = [[*KINDS, "send", "recv"], [*KINDS, "recv", "send"]]
    assert sorted(told(output, "kinds"), key=kinds.index) == kinds
    assert told(output, "numbers") == 2 * [[*range(1, len(KINDS) + 1), 1, 2]]
    assert told(output, "open") == [[True, False]]
    (place,) = told(output, "place")
    at = line(SCRIPTS / "comm_calls.py", "work = dist.all_reduce")
    assert place.endswith(f"comm_calls.py:{at} open_call")
    assert told(output, "shape") == [[[4], "torch.float32"]]
    assert told(output, "hashes") == [[5, True]]
    assert told(output, "parts") == [[[77_777 * 4 // 4096 % 8], [0], True]]
    assert told(output, "child") == [0, 0]
    assert told(output, "after") == 2 * [[0, False, 0, True]]
    late, other = told(output, "late")
    assert late == other
    assert re.match(r"\d~", late["weight"])
    inner = line(SCRIPTS / "comm_calls.py", "inner.backward()")
    for places in told(output, "called"):
        assert [each.rpartition("/")[2] for each in places] == 2 * [
            f"comm_calls.py:{inner} backward"
        ]
    for later, at_once in told(output, "waits"):
        assert later == at_once
        assert len({*later[1].values()} - {"", "0"}) == 2


def test_all_ways_to_communicate_are_seen_whole_and_change_nothing_in_any_mode() -> None:
    """Torch's profiler counts the calls where the watch is off: it is what the watch must see."""
    output = torchrun("comm_frameworks.py", ranks=4, within=280)
    assert told(output, "clean") == 4 * [True]
    found = told(output, "scene")
    plain = {(one["scene"], one["rank"]): one for one in found if one["mode"] == "off"}
    assert len(plain) == 4 * len(WAYS)
    assert {one["scene"] for one in found} == WAYS
    assert Counter(one["mode"] for one in found)["off"] == 2 * len(plain)
    for one in found:
        off = plain[one["scene"], one["rank"]]
        assert (one["values"], one["counts"]) == (off["values"], off["counts"]), one
    hashed = [one for one in found if one["mode"] == "hash"]
    of_ddp = [one for one in hashed if one["scene"].startswith("ddp")]
    assert all_gradients_have_equal_hashes(of_ddp) == 3
    all_outputs_have_hashes(hashed)


def all_gradients_have_equal_hashes(found: list[dict[str, Any]]) -> int:
    """Those of DDP's buckets, whose calls have none; return of how many scenes."""
    scenes: dict[str, list[Any]] = {}
    for one in found:
        scenes.setdefault(one["scene"], []).append(one["gradients"])
    for ranks in scenes.values():
        assert ranks == 4 * ranks[:1]
        assert [len(step) > 3 and all(step.values()) for step in ranks[0]] == [True, True]
    return len(scenes)


def all_outputs_have_hashes(found: list[dict[str, Any]]) -> None:
    hashes: dict[tuple[Any, ...], list[Any]] = {}
    for one in found:
        for kind, group, number, outputs in one["calls"]:
            hashes.setdefault((one["scene"], kind, group, number), []).append(outputs)
    for (scene, kind, *_), outputs in hashes.items():
        if scene.startswith("ddp") and kind == "all_reduce":
            assert outputs == 4 * [[]], (scene, outputs)
        elif kind not in ("send", "gather"):
            assert all(each and all(each) for each in outputs), (scene, kind, outputs)
        if kind in ("all_reduce", "broadcast") or kind.startswith("all_gather"):
            assert outputs == len(outputs) * outputs[:1], (scene, kind, outputs)


def test_modes_change_from_another_thread_between_calls_only() -> None:
    """Where that thread put kernels there itself, a call failed in every other run."""
    output = torchrun("comm_switches.py", within=120)
    assert told(output, "switched") == 2 * [[True, False]]


MPI_KINDS: Final = [
    *("Allreduce", "Allgather", "Allreduce", "Bcast", "Scatter", "Reduce", "Isend", "Irecv"),
    *("Barrier", "allreduce", "bcast", "allgather", "scatter", "isend", "recv"),
    *("allreduce", "allgather"),
]


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_each_call_of_mpi4py_is_seen_and_changes_nothing(
    name: str, when: str, tmp_path: Path
) -> None:
    programs = environment(name)
    more = ["--oversubscribe"] if name == "openmpi" else []
    done = subprocess.run(
        [programs / "mpirun", *more, "-n", "4", programs / "python", SCRIPTS / "comm_mpi.py", when],
        env={**os.environ, **mpi_environ(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = told(done.stdout, "scene")
    values = {(one["rank"], one["mode"]): one["values"] for one in found}
    hashes: dict[tuple[Any, ...], list[Any]] = {}
    for one in found:
        rank = one["rank"]
        assert one["values"] == values[rank, "off"]
        more = ["allreduce"] if rank in (0, 3) else []
        kinds = [*MPI_KINDS, *more] if one["mode"] != "off" else []
        assert [call[0] for call in one["calls"]] == kinds
        assert one["places"] == (["buffers", "groups", "objects"] if kinds else [])
        assert not any(is_open for *_, is_open in one["calls"])
        for kind, group, number, _, inputs, outputs, _ in one["calls"]:
            assert (inputs + outputs != []) == (one["mode"] == "hash" and kind != "Barrier"), kind
            if kind.lower() in ("allreduce", "allgather", "bcast"):
                key = one["mode"], kind, str(group), number
                hashes.setdefault(key, []).append(outputs)
    assert all(each == len(each) * each[:1] for each in hashes.values()), hashes
    finite = dict(told(done.stdout, "finite"))
    assert finite == {rank: [rank != 2, False] for rank in range(4)}
    assert told(done.stdout, "clean") == 4 * [True]


@pytest.mark.timeout(2 * ENDURES_S + 60)
@pytest.mark.parametrize("what", ["calls", "ddp"])
def test_it_endures(what: str) -> None:
    """Loops of small calls deadlocked within 300 of them, before the lock was let go."""
    count = CALLS if what == "calls" else STEPS
    output = torchrun("comm_endures.py", what, str(count), within=ENDURES_S, COMM=MODE)
    memory = told(output, "memory")
    assert len(told(output, "weights")) == 2
    for begin, end in memory:  # MiB
        assert end - begin < MOST_GROWTH, memory
    if what == "ddp":  # results are bitwise the same without it, and nothing is loaded
        off = torchrun("comm_endures.py", what, str(count), within=ENDURES_S, COMM="off")
        assert told(off, "weights") == told(output, "weights")
        assert (told(off, "kernels"), told(output, "kernels")) == ([False] * 2, [True] * 2)


@pytest.mark.parametrize("comm", ["time", rest("off")])
async def test_why_knows_what_a_backward_pass_waits_for(user: User, comm: str) -> None:
    """An async call on the line before, open too, is not what they wait for."""
    go_on = user.folder / "go"
    run = await run_torch(user, ["--no-wait", "--comm", comm], BACKWARD, str(go_on), ranks=3)
    await joined(run, name="editor", timeout=STARTS)
    body = await why(user, "not-joined")
    assert body["suspects"][0]["ranks"] == "2"
    assert "read_checkpoint" in body["sentence"]
    waits = body["suspects"][1]
    assert waits["ranks"] == "0-1"
    assert waits["stack"][-1]["line"] == line(BACKWARD, "loss.backward()")
    known = [each for each in body["evidence"] if each.startswith("known by the record")]
    if comm == "time":
        assert re.fullmatch(r"all_reduce #\d+ of group default_pg", waits["waitingFor"])
        assert known == ["known by the record of open calls of rank set 0-1 (--comm time)"]
    else:  # torch's recorder knows no lines
        assert waits["waitingFor"].startswith("all_reduce #1 of group aside")
        assert not known
    go_on.touch()
    assert (await run.ends(within=STARTS)).code == 0
