"""`wait` in a piped console: a script goes on when ranks are where it needs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dap_mux.frontends.console import plain
from tests.real.driving import COUNT, COUNTING, StartRanks
from tests.support.clients.consoles import console_of
from tests.support.session import session

pytestmark = pytest.mark.real


def lines(*texts: str) -> plain.NextLine:
    """As a pipe gives them."""
    reader = plain.LineQueue()
    reader.feed("".join(f"{text}\n" for text in texts).encode())
    reader.feed(b"")
    return reader.next


async def test_a_script(start_ranks: StartRanks, tmp_path: Path) -> None:
    ranks = await start_ranks(2, COUNTING, arguments=[str(tmp_path / "done")])
    async with (
        session([rank.port for rank in ranks]) as running,
        console_of(running, {COUNTING: [{"line": COUNT}]}) as (console, shown),
    ):
        await plain.converse(console, lines("wait", "cast all p count", "wait 1 stopped 30"))
        said = "".join(shown)
        assert said.index("all: stopped") < said.index("{0-1}: 0") < said.index("1: stopped")
        assert not console.failed


async def test_in_vain(start_ranks: StartRanks, tmp_path: Path) -> None:
    """It says who is where instead, and goes on: to leave would release the ranks."""
    ranks = await start_ranks(2, COUNTING, arguments=[str(tmp_path / "done")])
    async with (
        session([rank.port for rank in ranks]) as running,
        console_of(running, {COUNTING: [{"line": COUNT}]}) as (console, shown),
    ):
        await plain.converse(console, lines("wait", "wait exited 0.1", "cast all p count"))
        said = "".join(shown)
        assert "wait all exited: timed out after 0.1 s: ranks 0-1 stopped" in said
        assert said.index("timed out") < said.index("{0-1}: 0")
        assert console.failed
