"""Verdicts on dumps, error.json files and logs; the formats are those of torch's own source.

`FlightRecorderDetail.hpp` for the dumps of NCCL's recorder, `error_handler.py` of torchelastic for
failures, `ProcessGroupWrapper.cpp` for fingerprints. `tests/launchers/test_dumps.py` has real ones.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.frontends.cli.why import why_from
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.why.recorder_dump import (
    NotADump,
    collectives_in,
    plain_values,
    read_dump,
)
from dap_mux.session.dump_files import MAX_BYTES

TORCH: Final = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
BEGAN: Final = 1_795_617_865_308_431_904
LAST: Final = "all_reduce #1 of group default_pg at train.py:30 (train)"
Write = Callable[[Path, int, dict[str, Any]], None]


def entry(
    number: int, kind: str = "nccl:all_reduce", line: int = 30, **more: Any
) -> dict[str, Any]:
    """A record as of NCCL's recorder; one that hangs unless `more` says otherwise."""
    fields = {
        "record_id": number,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": kind,
        "time_created_ns": BEGAN + number * 10**9,
        "input_sizes": [[1024, 2]],
        "input_dtypes": ["Float"],
        "output_sizes": [[1024, 2]],
        "output_dtypes": ["Float"],
        "state": "started",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": False,
        "timeout_ms": 600_000,
        "is_p2p": False,
        "frames": [
            {"name": "all_reduce", "filename": TORCH, "line": 2501},
            {"name": "wrapper", "filename": TORCH.replace("distributed_", ""), "line": 83},
            {"name": "train", "filename": "/job/train.py", "line": line},
            {"name": "<module>", "filename": "/job/train.py", "line": 90},
        ],
    }
    return {**fields, **more}


def done(number: int, **more: Any) -> dict[str, Any]:
    return entry(number, state="completed", retired=True, **more)


def dump(*entries: dict[str, Any], ranks: str = "[0, 1, 2, 3]") -> dict[str, Any]:
    group = {"name": "0", "desc": "default_pg", "ranks": ranks}
    status = {"last_enqueued_collective": 2, "last_started_collective": 2}
    return {
        "entries": [*entries],
        "pg_config": {"0": group},
        "pg_status": {"0": {**status, "last_completed_collective": 1}},
        "comm_lib_version": "2.27.5",
        "nccl_comm_state": {},
        "version": "2.10",
    }


def as_pickle(folder: Path, rank: int, said: dict[str, Any]) -> None:
    folder.joinpath(f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(said, protocol=2))


def as_json(folder: Path, rank: int, said: dict[str, Any]) -> None:
    folder.joinpath(f"rank_{rank}.json").write_text(json.dumps(said), "utf-8")


@pytest.mark.parametrize("write", [as_pickle, as_json])
def test_the_rank_that_has_not_joined(tmp_path: Path, write: Write) -> None:
    for rank in range(4):
        write(tmp_path, rank, dump(done(1), *([entry(2)] if rank != 2 else [])))
    body = why_from(tmp_path)
    assert (body["verdict"], body["suspects"][0]["ranks"]) == ("not-joined", "2")
    assert body["sentence"].startswith("rank 2 stands at an unknown place")
    assert body["evidence"] == [
        "it has not reached all_reduce #2 of group default_pg",
        "ranks 0-1,3 wait in all_reduce #2 of group default_pg at train.py:30 (train)",
        f"rank 2's last call on record is {LAST}, which it has completed",
        "their time-out was 10 min",
    ]
    assert body["suspects"][1]["stack"][2] == {
        "path": "/job/train.py", "line": 30, "name": "train", "library": False,
    }  # fmt: skip
    assert body["next"].startswith("start the job by `dap-mux run`")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (entry(2, "nccl:broadcast", 41), "rank 1: calls broadcast #2 of group default_pg where"),
        (entry(2, input_sizes=[[512, 2]]), "with sizes [512, 2]"),
        (entry(2, input_dtypes=["Half"]), "with Half"),
        (entry(2, "nccl:_all_gather_base"), "calls all_gather_into_tensor #2"),
    ],
)
def test_the_rank_that_calls_something_else(
    tmp_path: Path, other: dict[str, Any], told: str
) -> None:
    for rank in range(4):
        as_pickle(tmp_path, rank, dump(done(1), other if rank == 1 else entry(2)))
    body = why_from(tmp_path)
    assert (body["verdict"], body["suspects"][0]["ranks"]) == ("mismatched-collective", "1")
    assert told in body["sentence"]


def test_sends_and_receives_in_a_circle(tmp_path: Path) -> None:
    for rank in range(3):
        kind = f"nccl:recv {rank}<-{(rank + 1) % 3}"
        as_pickle(
            tmp_path, rank, dump(entry(0, kind, is_p2p=True, p2p_seq_id=4), ranks="[0, 1, 2]")
        )
    body = why_from(tmp_path)
    assert (body["verdict"], body["suspects"][0]["ranks"]) == ("p2p-cycle", "0")


def test_a_rank_without_a_dump_is_named_and_not_accused(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        as_pickle(tmp_path, rank, dump(entry(2)))
    body = why_from(tmp_path)
    assert (body["verdict"], body["suspects"][0]["ranks"]) == ("undecided", "2")
    assert "it has left no dump" in body["sentence"]


def failure(folder: Path, rank: int, message: str, at: int) -> None:
    """As torchelastic's ErrorHandler writes it."""
    more = {"py_callstack": "Traceback (most recent call last):\n…", "timestamp": str(at)}
    place = folder / "attempt_0" / str(rank)
    place.mkdir(parents=True)
    said = {"message": {"message": message, "extraInfo": more}}
    place.joinpath("error.json").write_text(json.dumps(said), "utf-8")


def test_the_rank_that_failed_first(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        as_pickle(tmp_path, rank, dump(entry(2)))
        failure(tmp_path, rank, "DistBackendError: watchdog timed out after 600000 ms\nmore", 700)
    failure(tmp_path, 2, "ValueError: shard-5 is empty", 90)
    body = why_from(tmp_path)
    assert body["verdict"] == "process-gone"
    assert body["sentence"] == "rank 2 has ended with ValueError: shard-5 is empty"
    assert body["evidence"][-2] == (
        "ranks 0-1,3 ended with DistBackendError: watchdog timed out after 600000 ms"
    )


def test_failures_alone(tmp_path: Path) -> None:
    for rank in (0, 1):
        failure(tmp_path, rank, "RuntimeError: Connection closed by peer", 700)
    failure(tmp_path, 2, "ValueError: shard-5 is empty", 701)
    body = why_from(tmp_path)
    assert (body["verdict"], body["suspects"][0]["ranks"]) == ("process-gone", "2")
    assert body["evidence"] == ["ranks 0-1 ended with RuntimeError: Connection closed by peer"]


def test_failures_that_only_follow_accuse_nobody(tmp_path: Path) -> None:
    for rank in range(4):
        as_pickle(tmp_path, rank, dump(done(1), *([entry(2)] if rank else [])))
        failure(tmp_path, rank, "RuntimeError: Connection closed by peer [10.0.0.7]:4711", rank)
    body = why_from(tmp_path)
    assert (body["verdict"], body["suspects"][0]["ranks"]) == ("not-joined", "0")


DEVICES: Final = (
    "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu, layout=Strided (default), "
    "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
)
REDUCES: Final = (
    "CollectiveFingerPrint(SequenceNumber=2, OpType=ALLREDUCE, TensorShape=[3, 2], "
    f"TensorDtypes=Float, {DEVICES})"
)
WAITS: Final = "CollectiveFingerPrint(SequenceNumber=2OpType=BARRIER)"
DETECTED: Final = "RuntimeError: Detected mismatch between collectives on ranks."


def test_fingerprints_in_logs(tmp_path: Path) -> None:
    for rank in (0, 2):
        tmp_path.joinpath(f"rank-{rank}.log").write_text(
            f"{DETECTED} Rank {rank} is running collective: {REDUCES}, but Rank 1 is running "
            f"collective: {WAITS}.Collectives differ in the following aspects: \t Op type: "
            "ALLREDUCEvs BARRIER"
        )
    failure(
        tmp_path,
        1,
        f"{DETECTED} Rank 1 is running collective: {WAITS}, but Rank 0 is running collective: "
        f"{REDUCES}.",
        5,
    )
    body = why_from(tmp_path)
    assert (body["verdict"], body["suspects"][0]["ranks"]) == ("mismatched-collective", "1")
    assert body["sentence"].startswith(
        "rank 1: calls barrier #2 where ranks 0,2 wait in all_reduce"
    )


def test_what_others_say_of_a_rank_counts_less() -> None:
    """torch 2.13 reads a fingerprint of another rank's `barrier` wrong."""
    wrong = "CollectiveFingerPrint(SequenceNumber=0OpType=REDUCE)"
    found = collectives_in(f"ranks. Rank 1 is running collective: {WAITS}")
    of_another = collectives_in(
        f"ranks. Rank 0 is running collective: {REDUCES}, but Rank 1 is "
        f"running collective: {wrong}."
    )
    found.add(of_another)
    assert [getattr(found.of(rank), "kind", "") for rank in range(3)] == [
        "all_reduce",
        "barrier",
        "",
    ]


def test_shapes_of_a_fingerprint() -> None:
    found = collectives_in(f"ranks. Rank 7 is running collective: {REDUCES}").own[7]
    assert (found.sizes, found.dtypes, found.number) == ([[3, 2]], ["Float"], 2)


class Calls:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("called",))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "neither a pickle nor JSON"),
        (b"hello", "neither a pickle nor JSON"),
        (b"\x80\x02", "a broken pickle"),
        (pickle.dumps(Calls(), protocol=2), r"more than plain values \(GLOBAL\)"),
        (pickle.dumps(Calls(), protocol=4), r"more than plain values \(STACK_GLOBAL\)"),
        (pickle.dumps({1, 2}, protocol=4), "more than plain values"),
        (b"\x80\x02]r\xff\xff\xff\x7f.", "places far beyond its length"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x00.", "a broken pickle"),
        (b"\x80\x02" + b"]" * 10 + b"." + b"x" * 20, "no list of entries"),
        (pickle.dumps({"entries": 3}), "no list of entries"),
        (b"[" * 100_000, "nested too deep"),
        (b"[" + b"1," * 5_000_000 + b"1]", "more than 4000000 values"),
        (b'{"entries": [{}]}', r"a malformed entry \(KeyError"),
        (json.dumps(dump(entry(2, process_group=7))).encode(), "a malformed entry"),
        (json.dumps(dump(entry(2, profiling_name=["x"]))).encode(), "list in place of a text"),
        (json.dumps(dump(entry(2, input_sizes=[[[]]]))).encode(), "list in place of a number"),
    ],
)  # fmt: skip
def test_what_is_no_dump(data: bytes, why: str) -> None:
    with pytest.raises(NotADump, match=why):
        read_dump(data)


def test_lists_that_are_inside_of_each_other_many_times() -> None:
    bomb: list[Any] = [1]
    for _ in range(60):
        bomb = [bomb, bomb]
    began = time.process_time()
    for said in (dump(entry(2, input_sizes=bomb)), dump(entry(2, frames=bomb)), {"entries": bomb}):
        with suppress(NotADump):
            read_dump(pickle.dumps(said))
    assert time.process_time() - began < 2


def _doubled(value: Any, times: int) -> Any:
    for _ in range(times):
        value = (value, value)
    return value


def _deep(times: int) -> Any:
    value: Any = 1
    for _ in range(times):
        value = [value]
    return value


@pytest.mark.parametrize(
    "groups",
    [{"0": {"name": _doubled(1, 60)}}, {"0": {"name": _deep(200)}}, {_doubled(1, 2): {}}],
    ids=["doubled", "nested", "a tuple"],
)
def test_a_groups_name_that_is_no_text_is_none(groups: Any) -> None:
    said = {**dump(entry(2)), "pg_config": {**groups, "9": {"name": "own", "ranks": "[0, 1]"}}}
    try:
        assert read_dump(pickle.dumps(said)).members == {"own": [0, 1]}
    except NotADump as error:
        assert "tuples of more than" in str(error)


def test_a_key_that_takes_for_ever_is_refused_before_it_is_made() -> None:
    key = pickle.dumps(_doubled(1, 60), protocol=2)[:-1]  # making it a key here takes as long
    with pytest.raises(NotADump, match="tuples of more than"):
        read_dump(key[:2] + b"}" + key[2:] + b"K\x01s.")


def test_a_key_that_takes_long_many_times_is_refused_as_well() -> None:
    """Each is small enough; a thousand of them are not."""
    key = pickle.dumps(_doubled(1, 18), protocol=2)[2:-1]
    with pytest.raises(NotADump, match="tuples of more than"):
        read_dump(b"\x80\x02}" + key + b"r\x64\0\0\0K\x01s" + b"h\x64K\x01s" * 1000 + b".")


def test_long_texts_and_control_characters_are_made_harmless() -> None:
    said = dump(entry(2, "nccl:\x1b[31m" + "x" * 9999))
    (found,) = read_dump(pickle.dumps(said)).entries
    assert found.collective.kind.isprintable()
    assert len(found.collective.kind) < 600


@given(st.binary(max_size=300))
def test_anything_is_read_or_refused(data: bytes) -> None:
    for each in (data, b"\x80\x02" + data):
        with suppress(NotADump):
            read_dump(each)
        with suppress(NotADump):
            plain_values(each)


def test_a_folder_without_dumps(tmp_path: Path) -> None:
    tmp_path.joinpath("notes.md").write_text("nothing")
    with pytest.raises(DapMuxError, match="no flight-recorder dump"):
        why_from(tmp_path)
    tmp_path.joinpath("core.4711").write_bytes(b"\x7fELF")
    with pytest.raises(DapMuxError, match=r"core\.4711: neither a pickle nor JSON"):
        why_from(tmp_path)
    with pytest.raises(DapMuxError, match="not a folder"):
        why_from(tmp_path / "nowhere")


def test_what_is_skipped_is_said(tmp_path: Path) -> None:
    for rank in range(2):
        as_pickle(tmp_path, rank, dump(entry(2), ranks="[0, 1]"))
    with tmp_path.joinpath("nccl_trace_rank_2").open("wb") as huge:
        huge.truncate(MAX_BYTES + 1)
    assert why_from(tmp_path)["evidence"][-1] == "skipped nccl_trace_rank_2: larger than 32 MB"


def test_dumps_of_two_moments_are_refused(tmp_path: Path) -> None:
    for attempt in ("attempt_0", "attempt_1"):
        (tmp_path / attempt).mkdir()
        as_pickle(tmp_path / attempt, 0, dump(entry(2)))
    with pytest.raises(DapMuxError, match="two dumps of rank 0"):
        why_from(tmp_path)
