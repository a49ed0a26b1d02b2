"""Garbage is looked for between the session's work, and found."""

from __future__ import annotations

import gc
import platform
import weakref
from collections.abc import AsyncIterator

import pytest

from dap_mux.shell import timers
from dap_mux.shell.timers import GarbageCollection, Timers
from tests.support.processes.waiting import until
from tests.support.soak.measured_session import resident

LIMIT = 5.0  # s; not a wait
PIECE, PIECES = 60_000, 1_000  # bytes each, too few for a mapping of its own; 60 MB


class Knot:
    """Refers to itself: only a look for garbage ends it."""

    def __init__(self) -> None:
        self.itself = self


class Worker:
    """A session that has done something."""

    def __init__(self) -> None:
        self.fed = 1
        self.timers = Timers()


@pytest.fixture
async def worker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    """A session whose garbage is looked at often."""
    for name in ("CHECK_INTERVAL_S", "LEAST_PAUSE_S"):
        monkeypatch.setattr(timers, name, 0.01)
    monkeypatch.setattr(timers, "MOST_PAUSE_S", 0.2)
    worker = Worker()
    collection = GarbageCollection(worker)
    collection.start()
    yield worker
    collection.stop()


async def test_it_is_found_at_a_quiet_moment(worker: Worker) -> None:
    knot = weakref.ref(Knot())
    await until(lambda: knot() is None, within=LIMIT, what="its end")


async def test_so_is_what_had_been_set_aside_before(worker: Worker) -> None:
    held = [Knot()]
    knot = weakref.ref(held[0])
    frozen = gc.get_freeze_count()
    await until(lambda: gc.get_freeze_count() != frozen, within=LIMIT, what="a quiet moment")
    held.clear()
    worker.fed += 1
    await until(lambda: knot() is None, within=LIMIT, what="its end")


async def test_it_is_found_where_no_moment_is_quiet(worker: Worker) -> None:
    knot = weakref.ref(Knot())

    def gone() -> bool:
        worker.fed += 1
        return knot() is None

    await until(gone, within=LIMIT, what="its end")


async def test_nothing_is_looked_at_while_nothing_is_done(worker: Worker) -> None:
    looks: list[str] = []
    gc.callbacks.append(
        lambda phase, about: looks.append(phase) if about["generation"] == 2 else None
    )
    try:
        await until(lambda: "stop" in looks, within=LIMIT, what="the first look")
        looks.clear()
        turns = iter(range(50))
        await until(lambda: next(turns) == 49, within=LIMIT, what="some intervals")
    finally:
        gc.callbacks.pop()
    assert not looks


async def test_the_process_is_left_as_it_was() -> None:
    before = gc.get_threshold()
    collection = GarbageCollection(Worker())
    collection.start()
    assert gc.get_threshold() != before
    collection.stop()
    assert gc.get_threshold() == before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives memory back")
async def test_free_memory_is_given_back(worker: Worker) -> None:
    """Pieces that are kept lie between those that are free, so that it is not at once."""
    pieces = [bytes(PIECE) for _ in range(PIECES)]
    kept, whole = pieces[::50], resident()
    del pieces
    most = whole - PIECES * PIECE // 1024 // 2
    await until(lambda: resident() < most, within=LIMIT, what=f"less than {most} KiB")
    assert kept
