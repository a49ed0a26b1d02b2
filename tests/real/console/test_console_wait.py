"""`wait` in a piped console: a script goes on when ranks are where it needs them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dap_mux.frontends.console import plain
from dap_mux.frontends.console.console import Console
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


@asynccontextmanager
async def counting(
    start_ranks: StartRanks, folder: Path
) -> AsyncIterator[tuple[Console, list[str]]]:
    """A console of two ranks that count, and what it has shown."""
    ranks = await start_ranks(2, COUNTING, arguments=[str(folder / "done")])
    async with (
        session([rank.port for rank in ranks]) as running,
        console_of(running, {COUNTING: [{"line": COUNT}]}) as shown,
    ):
        yield shown


async def test_a_script(start_ranks: StartRanks, tmp_path: Path) -> None:
    async with counting(start_ranks, tmp_path) as (console, shown):
        await plain.converse(console, lines("wait", "cast all p count", "wait 1 stopped 30"))
        said = "".join(shown)
        assert said.index("all: stopped") < said.index("{0-1}: 0") < said.index("1: stopped")
        assert not console.failed


async def test_in_vain(start_ranks: StartRanks, tmp_path: Path) -> None:
    """It says who is where instead, and goes on: to leave would release the ranks."""
    async with counting(start_ranks, tmp_path) as (console, shown):
        await plain.converse(console, lines("wait", "wait exited 0.1", "cast all p count"))
        said = "".join(shown)
        assert "wait all exited: timed out after 0.1 s: ranks 0-1 stopped" in said
        assert said.index("timed out") < said.index("{0-1}: 0")
        assert console.failed
