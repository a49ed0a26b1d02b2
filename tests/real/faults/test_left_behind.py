"""What a session leaves in a rank: nothing the next debugger would notice, and less to fear."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.engine import Settings
from dap_mux.engine.ranks.patching import YES, attach_expression
from dap_mux.session.session import injected_sources
from tests.real.driving import StartRanks, driving, ends_well, script
from tests.support.processes.commands import line_of
from tests.support.processes.waiting import until

pytestmark = pytest.mark.real
PROGRAM: Final = script("until_told")
COUNT: Final = {PROGRAM: [line_of(PROGRAM, "count")]}
PATCHES: Final = attach_expression(injected_sources(), debug_children=False)
LIMIT: Final = 30.0  # s; not a wait
# The function behind the cache of compiled expressions.
HOW_QUICK: Final = (
    "__import__('_pydevd_bundle.pydevd_vars', fromlist=['x']).compile_as_eval.__wrapped__.__name__"
)
# What is behind that a rank owes an answer, and behind that it gives one: behind that a line of a
# logpoint may be left out.
HOW_FORGETFUL: Final = (
    "[' '.join((inner(api.request_exec_or_evaluate_json)['evaluate'].__name__,"
    " type(inner(add)['add_command']).__name__))"
    " for inner in [lambda f: __import__('inspect').getclosurevars(f).nonlocals]"
    " for api in [__import__('_pydevd_bundle.pydevd_api', fromlist=['x']).PyDevdAPI]"
    " for db in [__import__('pydevd').get_global_debugger()]"
    " for add in [inner(db.writer.add_command)['add_command']]][0]"
)


async def test_the_next_debugger_gets_debugpys_own_events(
    start_ranks: StartRanks, tmp_path: Path
) -> None:
    """A rank that we patch steps in few messages; the debugger after us need not know of that."""
    done = tmp_path / "done"
    (rank,) = await start_ranks(1, PROGRAM, arguments=[str(done)])
    async with driving([rank.port], COUNT) as driver:
        await driver.states("stopped")
        (known,) = driver.session.engine.core.ranks.values()
        await until(lambda: known.patched is not None, within=LIMIT, what="it is patched")
        assert known.patched
        await driver.leave()
    await asyncio.sleep(Settings().reconnect_gap)  # no process can connect sooner
    stock = await DapClient.connect("127.0.0.1", rank.port)
    await stock.handshake({"justMyCode": False}, breakpoints=COUNT, timeout=LIMIT)
    stop = await stock.wait_event("stopped", timeout=LIMIT)
    assert not {"stackFrames", "lineText", "threadName"} & stop.keys()
    await stock.request("next", {"threadId": stop["threadId"]}, timeout=LIMIT)
    await stock.wait_event("continued", timeout=LIMIT)
    await stock.disconnect(timeout=LIMIT)
    await ends_well([rank], done)


@pytest.fixture
async def client(start_ranks: StartRanks, tmp_path: Path) -> AsyncIterator[DapClient]:
    """A stock client of a rank that runs; at the end it leaves, and the rank ends well."""
    done = tmp_path / "done"
    (rank,) = await start_ranks(1, PROGRAM, arguments=[str(done)])
    stock = await DapClient.connect("127.0.0.1", rank.port)
    await stock.handshake({"justMyCode": False}, timeout=LIMIT)
    yield stock
    await stock.disconnect(timeout=LIMIT)
    await ends_well([rank], done)


async def test_a_continue_that_comes_too_late_is_answered(client: DapClient) -> None:
    """debugpy alone never answers it, nor anything after it."""
    patched = await client.request("evaluate", {"expression": PATCHES}, timeout=LIMIT)
    assert patched["result"].split(" ")[:2] == [YES, YES]
    all_threads = {"threadId": 1}  # whichever: debugpy's adapter means all of them
    for _ in range(3):
        await client.request("continue", all_threads, timeout=LIMIT)
        await client.request("pause", all_threads, timeout=LIMIT)
        await client.wait_event("stopped", timeout=LIMIT)
        for _ in range(2):
            await client.request("continue", all_threads, timeout=LIMIT)
    assert (await client.request("evaluate", {"expression": "6 * 7"}))["result"] == "42"


async def test_a_rank_that_is_patched_again_is_patched_once(client: DapClient) -> None:
    """Each watch is compiled once, who left is forgotten, answers go first: no deeper each time."""
    for _ in range(2):
        await client.request("evaluate", {"expression": PATCHES}, timeout=LIMIT)
        told = await client.request("evaluate", {"expression": HOW_QUICK}, timeout=LIMIT)
        assert told["result"].strip("'") == "compile_as_eval"
        told = await client.request("evaluate", {"expression": HOW_FORGETFUL}, timeout=LIMIT)
        assert told["result"] == "request_exec_or_evaluate_json method"
    long = await client.request("evaluate", {"expression": "'é' * 200_000"}, timeout=LIMIT)
    assert long["result"].strip("'") == "é" * 200_000
