"""The stacks of this process's own threads, as a rank tells them."""

from __future__ import annotations

import asyncio
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dap_mux.rank.injected import source_of
from dap_mux.rank.injected.evidence.stacks import MAX_CHARS, MAX_FRAMES, OURS, stacks

HERE = __file__


@pytest.fixture
def waiting() -> Iterator[queue.Queue[int]]:
    """A thread that waits in `inner`, so many calls below `outer` as it is told."""
    depths: queue.Queue[int] = queue.Queue()
    reached, leave = threading.Event(), threading.Event()

    def inner(depth: int) -> None:
        if depth:
            inner(depth - 1)
        else:
            reached.set()
            leave.wait()

    def outer() -> None:
        inner(depths.get())

    thread = threading.Thread(target=outer, name="loader-3")
    depths.put(0)
    thread.start()
    reached.wait()
    yield depths
    leave.set()
    thread.join()


def read(text: str) -> dict[str, list[tuple[str, str, bool]]]:
    """Each thread's frames: file, function, whether it is a library's; the innermost last."""
    told: dict[str, Any] = json.loads(text)
    return {
        name: [
            (told["files"][file][0], told["functions"][f], told["files"][file][1])
            for file, f, _ in frames
        ]
        for name, _, frames in told["threads"]
    }


def test_every_thread_of_the_program_is_told(waiting: queue.Queue[int]) -> None:
    threads = read(stacks(every_thread=True))
    assert next(iter(threads)) == "MainThread"
    files = [(path, library) for path, _, library in threads["loader-3"]]
    names = [name.rpartition(".")[2] for path, name, _ in threads["loader-3"] if path == HERE]
    assert names == ["outer", "inner"]
    assert (threading.__file__, True) in files
    assert (HERE, False) in files
    assert waiting.empty()


def test_without_others_the_main_thread_is_told(waiting: queue.Queue[int]) -> None:
    threads = read(stacks(every_thread=False))
    assert [*threads] == ["MainThread"]
    assert threads["MainThread"][-1][:2] == (
        HERE,
        "test_without_others_the_main_thread_is_told",
    )
    assert waiting.empty()


def test_deep_stacks_keep_their_innermost_frames() -> None:
    def recurse(depth: int) -> str:
        return recurse(depth - 1) if depth else stacks(every_thread=False)

    (frames,) = read(recurse(MAX_FRAMES + 50)).values()
    assert len(frames) == MAX_FRAMES
    assert {name for _, name, _ in frames} == {"recurse"}, "the outermost are left out"


def test_many_threads_are_cut_before_debugpy_cuts_them() -> None:
    leave = threading.Event()
    names = [f"{'long' * 500}-{number}" for number in range(60)]
    threads = [threading.Thread(target=leave.wait, name=name) for name in names]
    for thread in threads:
        thread.start()
    try:
        text = stacks(every_thread=True)
    finally:
        leave.set()
        for thread in threads:
            thread.join()
    assert len(text) <= MAX_CHARS
    assert "MainThread" in read(text)


def test_a_line_of_the_answer_is_where_the_thread_is(waiting: queue.Queue[int]) -> None:
    told = json.loads(stacks(every_thread=True))
    (frames,) = (frames for name, _, frames in told["threads"] if name == "loader-3")
    own = [line for file, _, line in frames if told["files"][file][0] == HERE]
    text = Path(HERE).read_text("utf-8").splitlines()
    assert text[own[-1] - 1].strip() == "leave.wait()"
    assert waiting.empty()


def test_a_stopped_thread_ends_where_it_was_stopped() -> None:
    """pydevd has it wait by an event, so the frames on top are those of `threading`."""
    reached, leave = threading.Event(), threading.Event()
    names: dict[str, Any] = {"reached": reached, "leave": leave}
    stop = "def stop():\n    reached.set()\n    leave.wait()\n"
    exec(compile(stop, OURS, "exec"), names)

    def step() -> None:
        names["stop"]()

    thread = threading.Thread(target=step, name="stopped")
    thread.start()
    reached.wait()
    try:
        frames = read(stacks(every_thread=True))["stopped"]
    finally:
        leave.set()
        thread.join()
    assert frames[-1][:2] == (HERE, "step")


def test_a_main_thread_that_waits_for_the_others_at_the_end() -> None:
    program = """
import threading
from dap_mux.rank.injected import source_of
from dap_mux.rank.injected.evidence.stacks import stacks

def upload():
    threading.main_thread().join()
    print(stacks(True))

threading.Thread(target=upload, name="uploader").start()
"""
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    frames = read(told)
    assert list(frames) == ["MainThread", "uploader"]
    assert frames["MainThread"][0][:2] == (threading.__file__, "_shutdown")


async def asked_meanwhile() -> dict[str, list[list[str]]]:
    """What another thread is told while this one's loop runs: the functions of each stack."""
    told = json.loads(await asyncio.to_thread(stacks, False, source_of("task_trees")))
    found: dict[str, list[list[str]]] = {}
    for name, _, frames in told["threads"]:
        found.setdefault(name, []).append([told["functions"][f] for _, f, _ in frames])
    return found


TASKS = "MainThread, asyncio tasks"


class TestTasks:
    """asyncio tasks of the main thread."""

    async def test_where_each_waits_below_who_waits_for_it(self) -> None:
        gate, arrived = asyncio.Event(), asyncio.Semaphore(0)

        async def load() -> None:
            arrived.release()
            await gate.wait()

        async def train() -> None:
            await asyncio.gather(*(load() for _ in range(3)))

        async def serve() -> None:
            await gate.wait()

        tasks = [asyncio.create_task(train()), asyncio.create_task(serve())]
        for _ in range(3):
            await arrived.acquire()
        told = await asked_meanwhile()
        gate.set()
        await asyncio.gather(*tasks)
        assert ["train", "load", "wait"] in told[TASKS]
        assert ["serve", "wait"] in told[TASKS]
        assert told[TASKS].count(["train", "load", "wait"]) == 1, "the three are alike"

    async def test_the_graph_that_python_3_14_captures(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As its documentation has it: `awaited_by`, each with a `future`."""
        gate = asyncio.Event()

        async def load() -> None:
            await gate.wait()

        async def train() -> None:
            await gate.wait()

        inner, outer = asyncio.create_task(load()), asyncio.create_task(train())
        await asyncio.sleep(0)

        def captured(task: asyncio.Task[None]) -> SimpleNamespace | None:
            by = [SimpleNamespace(future=outer)] if task is inner else []
            return SimpleNamespace(future=task, call_stack=[], awaited_by=by)

        monkeypatch.setattr(asyncio, "capture_call_graph", captured, raising=False)
        told = await asked_meanwhile()
        gate.set()
        await asyncio.gather(inner, outer)
        assert ["train", "wait", "load", "wait"] in told[TASKS]

    def test_without_a_loop_there_are_none(self) -> None:
        assert TASKS not in json.loads(stacks(False, source_of("task_trees")))["threads"]

    async def test_what_asyncio_does_not_tell_is_left_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(asyncio, "all_tasks", None)
        assert [*await asked_meanwhile()] == ["MainThread"]
