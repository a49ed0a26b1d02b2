"""Ranks in other Pythons, and with other releases of debugpy, than the session's own.

All that reaches into debugpy's private parts is tried here: the patches of a session, and those
of the agent in the rank.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.engine import Settings
from tests.doctor.conftest import Doctor
from tests.real.driving import COUNTING, StartRanks, driving, joined
from tests.real.ranks.agents import Start
from tests.real.ranks.test_untraced import LIMIT, MAIN, PROGRAM, WORK, Files, files, visit
from tests.support.processes.commands import User, listed
from tests.support.processes.pythons import (
    NEWEST,
    OLDEST,
    OWN,
    TOO_OLD,
    VERSIONS,
    install,
    python_with,
)
from tests.support.processes.ranks import HOST
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.heavy]
__all__ = ["files"]
SUPPORTED: Final = [*((NEWEST, version) for version in VERSIONS), (OLDEST, OWN)]
ALL: Final = [*SUPPORTED, *((debugpy, OWN) for debugpy in TOO_OLD)]
PATH: Final = str(Path(__file__).parents[2])  # where these Pythons find dap-mux


@pytest.fixture(scope="module")
def installed() -> None:
    install()


@pytest.fixture
def python(installed: None, request: pytest.FixtureRequest) -> str:
    debugpy, version = request.param
    found = python_with(debugpy, version)
    if found is None:
        pytest.skip(f"no Python {version} on this machine")
    return str(found)


def names(of: list[tuple[str, str]]) -> list[str]:
    return [f"debugpy-{debugpy}-python-{version}" for debugpy, version in of]


each = pytest.mark.parametrize("python", ALL, indirect=True, ids=names(ALL))
each_supported = pytest.mark.parametrize("python", SUPPORTED, indirect=True, ids=names(SUPPORTED))
each_too_old = pytest.mark.parametrize(
    "python", [(one, OWN) for one in TOO_OLD], indirect=True, ids=TOO_OLD
)


@each
async def test_a_session(start_ranks: StartRanks, files: Files, python: str) -> None:
    """Patched, stopped, asked, stepped, paused and left; the rank's own log has none of it."""
    (rank,) = await start_ranks(1, PROGRAM, wait=False, arguments=files.arguments, python=python)
    await until(lambda: "early" in files.told, within=LIMIT, what="the thread runs")
    async with driving([rank.port], {PROGRAM: [MAIN]}) as driver:
        await driver.states("stopped")
        (known,) = driver.session.engine.core.ranks.values()
        await until(lambda: known.patched is not None, within=LIMIT, what="patched")
        assert known.patched
        frames = await driver.client.request("stackTrace", {"threadId": 1}, timeout=LIMIT)
        top = frames["stackFrames"][0]
        assert top["line"] == MAIN
        asked = {"expression": "sorted(traced)", "frameId": top["id"]}
        told = await driver.client.request("evaluate", asked, timeout=LIMIT)
        assert told["result"] == "['early', 'main']"
        await driver.client.request("next", {"threadId": 1}, timeout=LIMIT)
        await driver.states("stopped")
        asked = {"source": {"path": PROGRAM}, "breakpoints": []}
        await driver.client.request("setBreakpoints", asked, timeout=LIMIT)
        await driver.client.request("continue", {"threadId": 1}, timeout=LIMIT)
        await driver.states("running")
        cast = {"ranks": "0", "command": "p 6 * 7"}  # without a frame
        answer = await driver.client.request("cast", cast, timeout=LIMIT)
        assert [one["value"] for one in answer["results"]] == ["42"]
        why = await driver.client.request("why", {"ranks": "0"}, timeout=LIMIT)
        assert (why["verdict"], why["evidence"]) == ("healthy", [])
        await driver.client.request("pause", {"threadId": 1}, timeout=LIMIT)
        await driver.states("stopped")
        await driver.leave()
    await files.say(early=False, main=False)
    if not any(f"debugpy-{old}-" in python for old in TOO_OLD):  # their adapters hang on to clients
        await visit(rank.port, {"line": MAIN}, {"line": WORK, "condition": "name == 'early'"})
        await files.say(early=False, main=False)
    files.create("done")
    assert await rank.ended() == 0
    assert rank.output == "done\n"


@each_supported
async def test_the_agent_in_the_rank(start: Start, files: Files, python: str) -> None:
    """Untraced until a stock debugger comes, which stops threads that run already."""
    options = {"PYTHONPATH": PATH, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    rank = await start("--no-wait", PROGRAM, *files.arguments, python=python, **options)
    await files.say(early=False, main=False)
    for _ in range(2):
        early = {"line": WORK, "condition": "name == 'early'"}
        await visit(rank.record["port"], {"line": MAIN}, early)
        await files.say(early=False, main=False)
    files.create("done")
    assert await rank.ends() == 0


@each_supported
async def test_a_failure_is_shown(start: Start, tmp_path: Path, python: str) -> None:
    """An uncaught exception stops under the debugger, though none was there before."""
    program = tmp_path / "fails.py"
    program.write_text("def step(loss):\n    raise ValueError(loss)\n\n\nstep(42)\n", "utf-8")
    options = {"PYTHONPATH": PATH, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    rank = await start("--no-wait", str(program), python=python, **options)
    await until(lambda: "is held" in rank.text(), within=LIMIT, what="held")
    client = await DapClient.connect(HOST, rank.record["port"])
    await client.handshake({"justMyCode": False}, timeout=LIMIT)
    stop = await client.wait_event("stopped", timeout=LIMIT)
    frames = await client.request("stackTrace", {"threadId": stop["threadId"]}, timeout=LIMIT)
    top = frames["stackFrames"][0]
    assert (top["name"], top["line"]) == ("step", 2)
    asked = {"expression": "loss", "frameId": top["id"]}
    assert (await client.request("evaluate", asked, timeout=LIMIT))["result"] == "42"
    await client.request("continue", {"threadId": stop["threadId"]}, timeout=LIMIT)
    await client.wait_event("terminated", timeout=LIMIT)
    await client.close()
    assert await rank.ends() == 1


@each_too_old
async def test_what_is_too_old_is_named(
    start_ranks: StartRanks,
    user: User,
    caplog: pytest.LogCaptureFixture,
    python: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """With its number, the one that is needed and what to type, by session and doctor."""
    arguments = [str(tmp_path / "done")]
    (rank,) = await start_ranks(1, COUNTING, wait=False, arguments=arguments, python=python)
    number: Any = request.node.callspec.id
    with caplog.at_level(logging.WARNING):
        async with driving([rank.port]) as driver:
            await driver.states("running")
            await driver.leave()
    (said,) = [one.message for one in caplog.records if "debugpy" in one.message]
    assert f"debugpy is {number}" in said
    assert f"pip install 'debugpy>={OLDEST}'" in said
    await asyncio.sleep(Settings().reconnect_gap)  # no process can connect sooner
    attach = await user.start("attach", f"{HOST}:{rank.port}")
    client = await joined(attach, attach={"justMyCode": False}, timeout=LIMIT)
    await listed(client, "state", "running")
    found = await Doctor(user).only("debugpy-old")
    assert number in found["evidence"][0]
    assert found["paste"] == f"pip install 'debugpy>={OLDEST}'"
    await client.disconnect(timeout=LIMIT)
    assert rank.output == ""
