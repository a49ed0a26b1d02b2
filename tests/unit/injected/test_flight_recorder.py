"""torch's flight recorder as a rank tells it, from dumps that torch 2.13 has made."""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from dap_mux.rank.injected.evidence.flight_recorder import (
    C10D,
    INNER_C10D,
    NEWEST,
    RANKS,
    recorded,
    world_rank,
)


def entry(number: int, group: tuple[str, str] = ("0", "default_pg"), **changed: Any) -> Any:
    return {
        "collective_seq_id": number,
        "input_dtypes": ["Float"],
        "input_sizes": [[3, 2]],
        "is_p2p": False,
        "p2p_seq_id": 0,
        "process_group": list(group),
        "profiling_name": "gloo:all_reduce",
        "retired": False,
        "state": "scheduled",
        "time_created_ns": time.time_ns() - 5_000_000_000 + number,
        "timeout_ms": 1800000,
        **changed,
    }


def torch(monkeypatch: pytest.MonkeyPatch, **dump: Any) -> None:
    """Have a torch with this record loaded."""
    groups = {"world": {0: 0, 1: 1}, "half": {3: 1, 1: 0}}
    world = SimpleNamespace(pg_names={"world": "0", "half": "2"}, pg_group_ranks=groups)
    library = SimpleNamespace(is_initialized=lambda: True, get_rank=lambda: 3, _world=world)
    inner = SimpleNamespace(_dump_fr_trace_json=lambda: json.dumps(dump).encode())
    monkeypatch.setitem(sys.modules, C10D, library)
    monkeypatch.setitem(sys.modules, INNER_C10D, inner)


def test_without_torch_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, C10D, raising=False)
    assert recorded() == {}


def test_without_a_buffer_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    torch(monkeypatch, pg_config={}, pg_status={}, version="2.10")
    assert recorded() == {"recorder": "off"}


def test_the_newest_of_each_group_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    half = entry(0, ("2", "mesh_dp"), is_p2p=True, p2p_seq_id=7, profiling_name="nccl:send 1->0")
    torch(monkeypatch, entries=[*(entry(number) for number in range(1, 21)), half])
    told = recorded()
    assert told["recorder"] == "on"
    first, *others = told["collectives"]
    assert [one["number"] for one in others] == [*range(21 - NEWEST, 21)]
    assert (first["group"], first["number"], first["kind"]) == ("mesh_dp/2", 7, "send 1->0")
    assert (first["p2p"], first["members"]) == (True, [1, 3])
    last = others[-1]
    assert (last["group"], last["kind"], last["members"]) == ("default_pg", "all_reduce", [0, 1])
    assert (last["sizes"], last["dtypes"], last["timeout"]) == ([[3, 2]], ["Float"], 1800.0)
    assert 4 < last["age"] < 60


def test_what_is_retired_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """gloo leaves its state at `scheduled`."""
    torch(monkeypatch, entries=[entry(1, retired=True), entry(2)])
    assert [one["state"] for one in recorded()["collectives"]] == ["completed", "scheduled"]


def test_the_number_of_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, C10D, raising=False)
    for name in RANKS:
        monkeypatch.delenv(name, raising=False)
    assert world_rank(lambda library: True) == -1
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "11")
    assert world_rank(lambda library: True) == 11
    monkeypatch.setenv("SLURM_PROCID", "12")
    assert world_rank(lambda library: True) == 12
    mpi = SimpleNamespace(COMM_WORLD=SimpleNamespace(Get_rank=lambda: 5))
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", mpi)
    assert world_rank(lambda library: library is not mpi) == 12
    assert world_rank(lambda library: library is mpi) == 5
    torch(monkeypatch)
    assert world_rank(lambda library: True) == 3
