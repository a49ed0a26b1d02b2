"""Real debugpy keeps the contract that our double of it was written after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.engine import Settings
from tests.conftest import Connect
from tests.real.ranks.agents import Start
from tests.support.fake_rank.children_contract import Family, FamilyCheck, every_family_check
from tests.support.fake_rank.program import SCRIPT
from tests.support.fake_rank.rank_contract import (
    Bench,
    Check,
    begin_alone,
    every_check,
    every_check_alone,
    every_check_of_callers,
)
from tests.support.processes.callers import taking_a_call
from tests.support.processes.commands import User

pytestmark = [pytest.mark.real, pytest.mark.heavy]
REST: Final = Settings().reconnect_gap


@every_check
async def test_debugpy(
    check: Check, fails: bool, start_ranks: Callable[..., Any], connect: Connect, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    env = {"FAIL": "3"} if fails else {}
    (rank,) = await start_ranks(1, script, env=env)
    client = await connect(rank.port, strict=False)
    await check(Bench(client, str(script)))


@every_check_of_callers
async def test_debugpy_in_a_rank_that_calls(check: Check, fails: bool, user: User) -> None:
    """We are its adapter."""
    script = user.script(SCRIPT)
    async with taking_a_call(user, script, {"FAIL": "3"} if fails else {}) as client:
        await check(Bench(client, script))


@every_check_alone
async def test_debugpy_without_an_adapter(
    check: Check, fails: bool, start: Start, connect: Connect, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    rank = await start("--wait", str(script), **({"FAIL": "3"} if fails else {}))
    client = await connect(rank.record["port"], strict=False)
    await begin_alone(client)
    await check(Bench(client, str(script)))


@every_family_check
async def test_debugpys_children(
    check: FamilyCheck, start_ranks: Callable[..., Any], connect: Connect, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    (rank,) = await start_ranks(1, script)
    await check(Family(lambda: connect(rank.port, strict=False), rest=REST))
