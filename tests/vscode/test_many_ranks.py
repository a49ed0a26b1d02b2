"""A stop of very many ranks in a real VS Code: what it asks for, what it shows, how it moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from dap_mux.engine import Settings
from tests.support.fake_rank.program import FIRST, SCRIPT
from tests.support.processes.commands import User
from tests.support.processes.waiting import until
from tests.support.session import Session, session
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.fake_job import fake_job
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration
from tests.vscode.workbench import CALL_STACK, Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
MOST_REQUESTS: Final = 10
OUTLIER: Final = {7: FIRST + 2}
FOCUS: Final = [
    f"train train.py {FIRST}:1",
    "<module> train.py 12:1",
]


async def test_a_stop_of_all(user: User, stock_server: CodeServer, open_window: OpenWindow) -> None:
    """One window after the other job: 65 and 512 ranks, a row a class, then a row a rank."""
    user.script(SCRIPT)
    window = await open_window(stock_server)
    for count in (65, 512):
        rows = [
            f"rank 0 · train.py:{FIRST} PAUSED ON BREAKPOINT",
            *FOCUS,
            f"{count - 2} × train.py:{FIRST} · ranks 1-6,8-{count - 1} PAUSED",
            f"rank 7 · train.py:{FIRST + 2} PAUSED",
        ]
        await _stop(user, window, count, "auto", rows)
    one_a_rank = ["rank 0 PAUSED ON BREAKPOINT", *FOCUS, "rank 1 PAUSED", "rank 2 PAUSED"]
    await _stop(user, window, 512, "ranks", one_a_rank)


async def test_the_line_stays_where_ranks_stop_late(
    user: User, stock_server: CodeServer, open_window: OpenWindow
) -> None:
    """The stack is fetched anew for each of them, and the focus keeps its arrow."""
    user.script(SCRIPT)
    window = await open_window(stock_server)
    async with (
        fake_job(4, user.folder / "train.py") as job,
        session(job.ports) as running,
    ):
        await window.start(configuration(user, running.port, name="late ranks"))
        await until(
            lambda: all(rank.configured for rank in job.ranks), within=LIMIT, what="all attached"
        )
        for late in ([0, 1], [2], [3]):
            job.stop(FIRST, ranks=late)
            await window.stands_at(FIRST)
            await _quiet(window, running)
            assert await window.stop_line() == FIRST, late
        hints = [e for e in running.engine.events if e.get("body", {}).get("preserveFocusHint")]
        assert hints
        await window.leave()


async def _stop(user: User, window: Window, count: int, view: str, rows: Sequence[str]) -> None:
    """All ranks stop, one of them elsewhere; these are the first rows of CALL STACK then."""
    settings = Settings(view=view)
    async with (
        fake_job(count, user.folder / "train.py") as job,
        session(job.ports, settings=settings) as running,
    ):
        # A name of its own: VS Code may know still where the job before was.
        await window.start(configuration(user, running.port, name=f"{count} ranks, view {view}"))
        await until(
            lambda: all(rank.configured for rank in job.ranks), within=LIMIT, what="all attached"
        )
        await _quiet(window, running)
        asked, told = len(running.engine.asked), len(running.engine.events)
        await window.watch_stop_line()
        job.stop(FIRST, OUTLIER)

        async def top() -> list[str]:
            return [row.text for row in await window.rows(CALL_STACK)][: len(rows)]

        await window.becomes(top, lambda seen: seen == [*rows], "CALL STACK")
        await window.stands_at(FIRST)
        await _quiet(window, running)
        assert len(running.engine.asked[asked:]) <= MOST_REQUESTS, running.engine.asked[asked:]
        stops = [e["body"] for e in running.engine.events[told:] if e["event"] == "stopped"]
        assert len([stop for stop in stops if not stop.get("preserveFocusHint")]) == 1, stops
        assert await window.stop_lines() == [FIRST]
        await window.leave()


async def _quiet(window: Window, running: Session) -> None:
    """Wait until VS Code has asked nothing more for a while."""

    async def asked() -> int:
        return len(running.engine.asked)

    await window.quiet(asked)
