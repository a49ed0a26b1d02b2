"""What py-spy prints of processes becomes samples; the dumps are those of real ranks, shortened."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.why.evidence import Call, RankEvidence, Sample, is_library
from dap_mux.pure.insight.why.py_spy import Source, call_at, sample_of, threads_in
from tests.unit.insight.judging import named, verdict

PROGRAM: Final = """\
import time
from mpi4py import MPI

def train(comm, left):
    for step in range(6):
        time.sleep(0.1)
        value = comm.recv(source=(left + 3) % 4, tag=7)
    return world.allreduce(float(value))

world = MPI.COMM_WORLD.Split(0)
"""
TORCH: Final = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def local(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "addr": 140693525031144, "arg": True, "repr": value}


def frame(name: str, path: str, line: int, *variables: dict[str, Any]) -> dict[str, Any]:
    plain = {"module": None, "short_filename": None, "is_entry": False, "is_shim_entry": False}
    return {**plain, "name": name, "filename": path, "line": line, "locals": [*variables]}


def thread(*frames: dict[str, Any], tid: int | None = 71, **more: Any) -> dict[str, Any]:
    fields = {"pid": 71, "thread_id": 1406, "thread_name": None, "os_thread_id": tid}
    flags = {"active": False, "owns_gil": False, "process_info": None}
    return {**fields, **flags, **more, "frames": [*frames]}


ASLEEP = thread(
    frame("load", "/work/train.py", 5, local("shard", '"shard-2"'), local("step", "3")),
    frame("train", "/work/train.py", 9, local("total", "120")),
    frame("<module>", "/work/train.py", 12),
)
IN_TORCH = thread(
    frame("all_reduce", TORCH, 3252, local("work", "<torch._C._distributed_c10d.Work at 0x7f47>")),
    frame("_exception_logger.<locals>.wrapper", "/env/lib/python3.11/contextlib.py", 83),
    frame("train", "/work/train.py", 10),
)


def sample(*threads: dict[str, Any], rank: int = 0) -> Sample:
    dump = json.dumps(threads).encode()
    state = {"tid": 71, "state": "S", "system_call": "clock_nanosleep", "switches": 5}
    sources = {"/work/mpi.py": Source(PROGRAM)}
    return sample_of(threads_in(dump), 71, lambda tid: state, sources.get, rank)


def test_a_process_of_two_threads() -> None:
    found = sample(thread(tid=72, thread_name="rx", owns_gil=True), ASLEEP, rank=2)
    assert [(one.name, one.main) for one in found.threads] == [("MainThread", True), ("rx", False)]
    assert found.world_rank == 2
    assert [found.functions[place] for _, place, _ in found.threads[0].frames] == [
        "<module>", "train", "load",
    ]  # fmt: skip
    assert found.files == [("/work/train.py", False)]
    assert found.threads[0].frames[-1][2] == 5
    assert (found.threads[0].system_call, found.threads[1].owns_gil) == ("clock_nanosleep", True)


def test_the_agent_is_no_part_of_the_program() -> None:
    assert is_library("/home/me/dap-mux/dap_mux/rank/start/run_module.py")
    assert not is_library("/home/me/rank/train.py")


def test_names_are_plain_and_libraries_known() -> None:
    found = sample(IN_TORCH)
    assert "wrapper" in found.functions
    assert dict(found.files) == {
        "/work/train.py": False,
        "/env/lib/python3.11/contextlib.py": True,
        TORCH: True,
    }


def test_numbers_among_variables_tell_whether_a_thread_gets_on() -> None:
    before, later = (
        sample(thread(frame("train", "/work/train.py", 5, local("step", step)))) for step in "34"
    )
    assert before.threads[0].progress != later.threads[0].progress
    assert sample(thread(frame("f", "/work/train.py", 5))).threads[0].progress == ""


def test_the_rank_that_sleeps_is_named_where_the_others_wait_in_torch() -> None:
    looks = [sample(ASLEEP if rank == 2 else IN_TORCH, rank=rank) for rank in range(4)]
    found = verdict(*(RankEvidence(("job", 0), samples=[one] * 3) for one in looks))
    assert named(found) == ("not-joined", "2")
    assert "in all_reduce at train.py:10 (train)" in found.evidence[-1]


def test_the_peer_of_a_send_or_receive_in_torch() -> None:
    found = sample(thread(frame("recv", TORCH, 9, local("src", "3"), local("tag", "0"))))
    assert found.threads[0].call == Call("", arguments={"src": 3, "tag": 0})


@pytest.mark.parametrize(
    "dump",
    [
        b"",
        b"Error: Failed to get process executable name",
        b"[]",
        b"{}",
        b'[{"frames": 3}]',
        b'[{"frames": [{"name": "f"}]}]',
        b"\xff",
    ],
)
def test_malformed_output(dump: bytes) -> None:
    with pytest.raises(PeerFault, match="py-spy"):
        threads_in(dump)


def test_what_is_too_long_is_cut() -> None:
    many = [frame("f" * 9000, "/work/" + "x" * 9000, line) for line in range(1, 400)]
    found = sample(thread(*many), *[thread(tid=at) for at in range(100, 300)])
    assert len(found.threads) == 64
    assert len(found.threads[0].frames) == 200
    assert found.threads[0].frames[-1][2] == 1, "the innermost ones are kept"
    assert max(len(path) for path, _ in found.files) == 500


@given(st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(
    lambda value: json.dumps(value).encode()
))  # fmt: skip
def test_anything_is_a_dump_or_malformed(dump: bytes) -> None:
    with suppress(PeerFault):
        threads_in(dump)


@pytest.mark.parametrize(
    ("line", "variables", "wanted"),
    [
        (6, {}, Call("time.sleep(0.1)", "time.sleep")),
        (
            7,
            {"comm": "<mpi4py.MPI.Intracomm at 0x7f47>", "left": "2"},
            Call(
                "comm.recv(source=(left + 3) % 4, tag=7)",
                "mpi4py.MPI.Intracomm.recv",
                {"source": 1, "tag": 7},
            ),
        ),
        (7, {}, Call("comm.recv(source=(left + 3) % 4, tag=7)", "", {"tag": 7})),
        (
            8,
            {"value": "3"},
            Call("world.allreduce(float(value))", "mpi4py.MPI.COMM_WORLD.Split.allreduce"),
        ),
        (9, {}, None),
        (10, {}, Call("MPI.COMM_WORLD.Split(0)", "mpi4py.MPI.COMM_WORLD.Split", {"0": 0})),
        (99, {}, None),
    ],
)
def test_the_call_at_a_line(line: int, variables: dict[str, str], wanted: Call | None) -> None:
    assert call_at(Source(PROGRAM), line, variables) == wanted


@pytest.mark.parametrize("text", ["def (", "\0", "x = y\ny = x\nx.f()", "f()" * 3])
def test_any_source(text: str) -> None:
    call_at(Source(text), text.count("\n") + 1, {})


@given(st.text(alphabet="ab=.()\n+%0 -", max_size=60))
def test_any_text(text: str) -> None:
    source = Source(text)
    for line in range(5):
        call_at(source, line, {"a": "<b at 0x1>", "b": "0"})


def test_a_call_that_is_nested_too_deeply_is_shown_as_it_stands() -> None:
    text = f"f({' + '.join(['a'] * 2500)})"
    assert call_at(Source(text), 1, {}) == Call(text[:200])


LOCKS = """\
def read():
    with FILES:
        with INDEX:
            return 1
def reindex():
    with INDEX, shown():
        with FILES: return 2
        with self.lock:
            return 3
"""


def locked(*lines: tuple[str, int], asleep: str = "futex") -> Sample:
    """A process whose threads are at these lines; the first is the main one."""
    threads = [
        thread(frame(name, "/work/locks.py", line), tid=71 + at, thread_name=name)
        for at, (name, line) in enumerate(lines)
    ]
    state = {"state": "S", "system_call": asleep}
    sources = {"/work/locks.py": Source(LOCKS)}
    return sample_of(threads_in(json.dumps(threads).encode()), 71, lambda _: state, sources.get, 0)


def test_locks_by_their_names_where_threads_sleep() -> None:
    found = locked(("read", 3), ("reindex", 7))
    first, second = found.threads
    assert (first.lock, first.holds) == ("/work/locks.py:INDEX", ["/work/locks.py:FILES"])
    assert (second.lock, second.holds) == ("/work/locks.py:FILES", ["/work/locks.py:INDEX"])
    assert first.call == Call("with INDEX (a lock)")
    looks = RankEvidence(("job", 0), samples=[found] * 3)
    assert named(verdict(looks)) == ("lock-cycle", "0")


def test_a_lock_that_may_be_another_in_each_frame_has_no_name() -> None:
    found = locked(("reindex", 8)).threads[0]
    assert (found.lock, found.call) == ("", Call("with self.lock (a lock)"))


def test_a_lock_that_a_library_takes() -> None:
    """Of `multiprocessing`: its own function enters it."""
    enters = frame("__enter__", "/env/lib/python3.11/multiprocessing/synchronize.py", 95)
    program = frame("read", "/work/locks.py", 2)
    threads = threads_in(json.dumps([thread(enters, program)]).encode())
    state, sources = {"system_call": "futex"}, {"/work/locks.py": Source(LOCKS)}
    found = sample_of(threads, 71, lambda _: state, sources.get, 0).threads[0]
    assert found.call == Call("with FILES (a lock)")


def test_who_is_at_work_waits_for_no_lock() -> None:
    found = locked(("read", 3), asleep="").threads[0]
    assert (found.lock, found.holds, found.call) == ("", [], None)
