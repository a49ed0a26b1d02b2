"""Real debugpy keeps the contract that our double of it was written after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Connect
from tests.support.children_contract import Family, FamilyCheck, every_family_check
from tests.support.fake_program import SCRIPT
from tests.support.rank_contract import Bench, Check, every_check

pytestmark = pytest.mark.real


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


@every_family_check
async def test_debugpys_children(
    check: FamilyCheck, start_ranks: Callable[..., Any], connect: Connect, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    (rank,) = await start_ranks(1, script)
    await check(Family(lambda: connect(rank.port, strict=False)))
