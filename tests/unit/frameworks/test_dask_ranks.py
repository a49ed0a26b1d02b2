"""Which ranks the workers of a Dask cluster are."""

from __future__ import annotations

from typing import Any

from dap_mux.rank.frameworks.dask_ranks import RESTART_TIMEOUT_S, RESTARTS, DaskRanks

HERE, THERE = "machine-1", "machine-2"
Workers = dict[str, dict[str, Any]]


def workers(*names: object, nannies: bool = True) -> Workers:
    """Workers of these names, at the ports 1, 2, ... of a host; their Nannies at 101, 102, ..."""
    return {
        f"tcp://10.0.0.1:{port}": {
            "name": name,
            "nanny": f"tcp://10.0.0.1:{100 + port}" if nannies else None,
        }
        for port, name in enumerate(names, 1)
    }


def reports(present: Workers, machine: str = HERE, pid: int = 0) -> dict[str, dict[str, Any]]:
    """All listen at 5001, 5002, ...; as one process where a `pid` is given."""
    return {
        address: {"port": 5000 + place, "pid": pid or 70 + place, "machine": machine, "problem": ""}
        for place, address in enumerate(present, 1)
    }


def ranks(found: list[dict[str, Any]], *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(each[key] for key in keys) for each in found]


def test_workers_are_numbered_by_name() -> None:
    """A name that is a number is the rank, as LocalCluster has it; others are put in order."""
    named = workers("w-10", "w-9", "w-x", 1, 20)
    found = DaskRanks(HERE).workers(named, reports(named), [], 0)
    by_port = ranks(found, "rank", "port", "group")
    assert by_port == [
        (0, 5002, "dask"),
        (1, 5004, "dask"),
        (2, 5001, "dask"),
        (3, 5003, "dask"),
        (20, 5005, "dask"),
    ]


def test_a_worker_that_comes_later_gets_the_next_number() -> None:
    known, first = DaskRanks(HERE), workers("w-1")
    known.workers(first, reports(first), [], 0)
    both = {**first, "tcp://10.0.0.1:9": {"name": "w-0", "nanny": None}}
    assert ranks(known.workers(both, reports(both), [], 0), "rank", "port") == [
        (0, 5001),
        (1, 5002),
    ]


def test_a_worker_that_its_nanny_starts_again_keeps_its_number() -> None:
    known, before = DaskRanks(HERE), workers("a", "b")
    known.workers(before, reports(before), [], 0)
    first, second = before.items()
    less = dict([second])
    found = known.workers(less, reports(before), [], 1)
    assert ranks(found, "rank") == [(0,), (1,)]
    assert (found[0]["waits"], found[1].get("waits")) == (RESTARTS, None)
    again = {**less, "tcp://10.0.0.1:9": first[1]}
    found = known.workers(again, reports(again), [], 2)
    assert ranks(found, "rank", "port") == [(0, 5002), (1, 5001)]
    assert "waits" not in found[0]
    assert found[0]["incarnation"].startswith("tcp://10.0.0.1:9 ")


def test_a_worker_that_does_not_come_back_is_gone() -> None:
    for nannies, after in ((True, RESTART_TIMEOUT_S), (False, 0)):
        known, before = DaskRanks(HERE), workers("a", "b", nannies=nannies)
        known.workers(before, reports(before), [], 0)
        less = dict([*before.items()][1:])
        known.workers(less, reports(before), [], 5)
        found = known.workers(less, reports(before), [], 5 + after)
        assert ranks(found, "rank") == [(1,)]


def test_a_process_is_one_rank() -> None:
    known, present = DaskRanks(HERE), workers("a", "b")
    one = {"port": 5000, "pid": 7, "machine": HERE}
    found = known.workers(present, reports(present, pid=7), known.scheduler("tcp://h:1", one), 0)
    assert ranks(found, "group", "rank") == [("dask", 0)]
    assert [*known.notices] == [
        "dask:1 runs in the process of dask:0, and is debugged there",
        "scheduler:0 runs in the process of dask:0, and is debugged there",
    ]


def test_what_runs_in_the_driver_is_debugged_there() -> None:
    known, present = DaskRanks(HERE, driver=7), workers("a")
    own = {"port": 5000, "pid": 7, "machine": HERE}
    found = known.workers(present, reports(present), known.scheduler("tcp://h:1", own), 0)
    assert ranks(found, "group", "rank") == [("dask", 0)]
    far = reports(present, machine=THERE, pid=7)  # the same number on another machine
    assert ranks(known.workers(present, far, [], 0), "group", "rank") == [("dask", 0)]


def test_workers_of_another_machine_are_at_its_address() -> None:
    present = workers("a")
    near, far = (
        DaskRanks(HERE).workers(present, reports(present, machine=each), [], 0)[0]["host"]
        for each in (HERE, THERE)
    )
    assert (near, far) == ("127.0.0.1", "10.0.0.1")
    six = {"tcp://[fd00::1]:8786": {"name": "a", "nanny": None}}
    assert DaskRanks(HERE).workers(six, reports(six, THERE), [], 0)[0]["host"] == "fd00::1"


def test_a_worker_that_cannot_be_debugged_is_told() -> None:
    known, present = DaskRanks(HERE), workers("a", "b")
    found = reports(present)
    found["tcp://10.0.0.1:1"].update(port=0, problem="it has no debugpy")
    assert ranks(known.workers(present, found, [], 0), "rank") == [(1,)]
    assert [*known.notices] == ["worker a cannot be debugged: it has no debugpy"]


def test_threads_of_tasks_are_those_of_the_workers_executors() -> None:
    present = workers("w")
    told = {
        key: {**each, "threads": ["[w]-Dask", "p" * 999]} for key, each in reports(present).items()
    }
    (rank,) = DaskRanks(HERE).workers(present, told, [], 0)
    assert rank["userThreads"] == ["*Dask-*-Threads*", "[[]w]-Dask*"]
