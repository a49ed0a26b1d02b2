"""The console's `comm`, and the attribute `comm`: what ranks record, changed while they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from dap_mux.frontends.console import plain
from tests.real.console.test_console_wait import counting, lines
from tests.real.driving import COUNTING, StartRanks, driving

pytestmark = pytest.mark.real
PROBLEM = "{1}: dap-mux is not installed in its Python"
NOT_INSTALLED = "p __import__('sys').modules.update({'dap_mux.rank.comm.switch': None})"


async def test_modes_change_and_a_rank_without_dap_mux_says_what_helps(
    start_ranks: StartRanks, tmp_path: Path
) -> None:
    async with counting(start_ranks, tmp_path) as (console, shown):
        words = ("comm", "comm 1 hash", "comm", "comm off", f"cast 1 {NOT_INSTALLED}", "comm")
        await plain.converse(console, lines("wait", *words, "comm 7"))
        said = "".join(shown)
        at = [
            said.index(text)
            for text in ("{0-1} comm is off", "{1} comm is hash", "{0} comm is off", PROBLEM)
        ]
        assert at == sorted(at), said
        assert "install it there as here" in said
        assert "no rank 7" in said


async def test_the_attribute_reaches_ranks_that_run(
    start_ranks: StartRanks, tmp_path: Path
) -> None:
    ranks = await start_ranks(2, COUNTING, arguments=[str(tmp_path / "done")])
    async with driving(ranks, live=2, comm="finite") as driver:
        asked = await driver.client.request("comm", {})
        assert asked == {"modes": [{"ranks": "0-1", "mode": "finite"}], "errors": []}
