"""A thread's numbers tell whether it gets on, whatever Python runs it; its children are told."""

from __future__ import annotations

import ast
import asyncio
import gc
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dap_mux.rank.injected.evidence import source_code, stacks, static_values, thread_states
from tests.support.processes.waiting import until


class Kept:
    """Something that a function has, and drops."""


class Counting:
    """A thread that counts each time it is let go."""

    def __init__(self) -> None:
        self.at_rest, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.kept: list[weakref.ref[Kept]] = []

    def run(self) -> None:
        share = 0.5
        dropped: Kept | None = None
        for number in range(3):
            dropped = Kept()
            self.kept.append(weakref.ref(dropped))
            self.at_rest.release()
            self.go_on.acquire()
            dropped = None
            share *= number + 2
        self.at_rest.release()
        self.go_on.acquire()
        assert dropped is None

    def digest(self, *, polls: bool = False) -> str:
        (frame,) = [
            frame for _, frames, _ in stacks.walk(True) for frame in frames if self.is_run(frame)
        ]
        return static_values.progress([frame], False, polls)

    def is_run(self, frame: stacks.Place) -> bool:
        return frame.f_code is Counting.run.__code__


@contextmanager
def counting() -> Iterator[Counting]:
    one = Counting()
    thread = threading.Thread(target=one.run)
    thread.start()
    try:
        one.at_rest.acquire()
        yield one
    finally:
        for _ in range(9):
            one.go_on.release()
        thread.join()


def test_a_function_that_counts_has_another_digest_each_time() -> None:
    with counting() as one:
        first, again = one.digest(), one.digest()
        one.go_on.release()
        one.at_rest.acquire()
        later = one.digest()
    assert first == again != ""
    assert later not in (first, "")


def test_a_loop_that_looks_for_something_does_not_count() -> None:
    with counting() as one:
        assert one.digest(polls=True) == ""


def test_nothing_of_a_function_is_kept_by_a_look() -> None:
    with counting() as one:
        one.digest()
        one.go_on.release()
        one.at_rest.acquire()
        gc.collect()
        assert one.kept[0]() is None


@pytest.mark.skipif(not static_values.SPACES, reason="another Python has no need of it")
def test_what_cannot_be_read_gives_nothing() -> None:
    assert static_values._in_memory(0, 3) == []


@pytest.mark.parametrize(
    ("loop", "looks"),
    [
        ("for _ in range(9): sleep(1)", False),
        ("while step < last: step += 1", False),
        ("while True: sleep(1)", False),
        ("for at in data:\n  if at >= most: break", False),
        ("while not done(): sleep(1)", True),
        ("while self.waits: sleep(1)", True),
        ("for _ in range(9):\n  if there(): break\n  sleep(1)", True),
        ("while True:\n  try: return connect()\n  except OSError: sleep(1)", True),
        ("sleep(1)", False),
    ],
)
def test_loops_that_look_for_something(loop: str, looks: bool) -> None:
    inside = f"def f():\n  {loop.replace(chr(10), chr(10) + '  ')}"
    around = [node for node in ast.walk(ast.parse(inside)) if isinstance(node, ast.stmt)]
    assert source_code.polls([*around]) is looks


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")
async def test_children_are_told_with_what_they_wait_in() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE
    )

    def told() -> list[object]:
        found = {one["pid"]: one.get("system_call") for one in thread_states.children()}
        return [call for pid, call in found.items() if pid == child.pid and call == "read"]

    await until(told, within=20.0, what="the child reads")
    await child.communicate(b"\n")
    assert child.pid not in [one["pid"] for one in thread_states.children()]
    assert os.getpid() not in [one["pid"] for one in thread_states.children()]
