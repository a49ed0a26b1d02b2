"""Many deadlines behind one timer of the event loop."""

from __future__ import annotations

import asyncio
from functools import partial

from dap_mux.shell.timers import Timers
from tests.support.processes.waiting import until

LIMIT = 5.0  # s; not a wait


async def test_they_pass_in_their_order() -> None:
    passed: list[str] = []
    timers = Timers()
    for name, seconds in {"third": 0.03, "first": 0.01, "second": 0.02, "fourth": 0.03}.items():
        timers.call_later(seconds, partial(passed.append, name))
    await until(lambda: len(passed) == 4, within=LIMIT, what="all of them")
    assert passed == ["first", "second", "third", "fourth"]


async def test_one_that_is_cancelled_does_not_pass() -> None:
    passed: list[str] = []
    timers = Timers()
    timers.call_later(0.02, partial(passed.append, "kept"))
    first = timers.call_later(0.01, partial(passed.append, "cancelled"))
    timers.call_later(0.0, first.cancel)
    await until(lambda: passed, within=LIMIT, what="the other one")
    assert passed == ["kept"]
    assert first.cancelled


async def test_one_may_set_itself_again() -> None:
    """And starves nobody, although it is due at once."""
    timers, turns = Timers(), 0

    def again() -> None:
        nonlocal turns
        turns += 1
        timers.call_later(0.0, again)

    again()
    await until(lambda: turns > 3, within=LIMIT, what="a few turns")
    timers.cancel_all()
    seen = turns
    await asyncio.sleep(0)
    assert turns == seen


async def test_those_behind_one_that_raises_still_pass() -> None:
    passed: list[str] = []
    faults: list[BaseException] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
    timers = Timers()

    def fail() -> None:
        raise ValueError

    timers.call_later(0.0, fail)
    timers.call_later(0.0, partial(passed.append, "behind"))
    await until(lambda: passed, within=LIMIT, what="the one behind")
    loop.set_exception_handler(None)
    assert len(faults) == 1


async def test_cancelled_ones_do_not_pile_up() -> None:
    """A session of a thousand ranks sets and cancels some for each, of a minute each."""
    timers = Timers()
    kept = timers.call_later(60.0, lambda: None)
    for _ in range(5000):
        timers.call_later(60.0, lambda: None).cancel()
    assert len(timers._heap) < 1000
    assert not kept.cancelled
    timers.cancel_all()
    assert kept.cancelled
