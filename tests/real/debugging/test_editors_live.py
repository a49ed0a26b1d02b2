"""VS Code with the stock configuration, as modelled, drives four real ranks.

What nvim-dap, dape and others see of the same is in `tests/engine/test_stop_patterns.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.real.driving import (
    COUNT,
    COUNTING,
    SCRIPTS,
    Driver,
    StartRanks,
    ends_well,
    let_end,
    script,
)
from tests.support.clients.live_editor import LiveEditor, live
from tests.support.editors import VSCodeModel
from tests.support.processes.commands import line_of
from tests.support.session import Session, session

pytestmark = pytest.mark.real
UNEVEN: Final = script("all_but_rank_0")
HERE: Final = line_of(UNEVEN, "here")
STOCK: Final[dict[str, Any]] = {
    "name": "Remote Attach to Cluster",
    "type": "debugpy",
    "request": "attach",
    "connect": {"host": "localhost", "port": 5677},
    "pathMappings": [{"localRoot": str(SCRIPTS), "remoteRoot": str(SCRIPTS)}],
    "justMyCode": True,
    "clientOS": "unix",
    "workspaceFolder": str(SCRIPTS),
    "__configurationTarget": 6,
    "__sessionId": "4c1f7c5e-2c2b-4f7e-9d52-4f9a3e6b1c11",
}


def rows(running: Session) -> list[int]:
    return [running.engine.view.id_of(("job", rank)) for rank in range(4)]


def lines(running: Session) -> list[int | None]:
    """Where the ranks really stand, whatever the editor shows."""
    ranks = running.engine.core.sorted_ranks()
    frames = [rank.stop.frames if rank.stop else None for rank in ranks]
    return [stack[0].line if stack else None for stack in frames]


async def test_four_threads_are_seen_and_driven(start_ranks: StartRanks, done: Path) -> None:
    ranks = await start_ranks(4, COUNTING, arguments=[str(done)])
    async with session([rank.port for rank in ranks]) as running:
        async with live(VSCodeModel({COUNTING: [COUNT]}), running.port, STOCK) as editor:
            await stopped_at(editor, running, COUNT)
            names = [name for name, _ in editor.model.threads.values()]
            assert names == ["rank 0", "rank 1", "rank 2", "rank 3"]
            stepped = editor.model.focus
            editor.send(editor.model.press_f10())
            await stopped_at(editor, running, COUNT + 1)
            continued = editor.model.focus
            editor.send(editor.model.press_f5())
            await editor.until(lambda: len(editor.resumed()) == 2, "two keys, two requests")
            await stopped_at(editor, running, COUNT)
            # Who stops first has the focus then: it may be another than before.
            assert editor.resumed() == [("next", stepped), ("continue", continued)]
        await ends_well(ranks, done)  # hanging up is leaving: they run on


async def stopped_at(editor: LiveEditor, running: Session, line: int) -> None:
    """All four are stopped there, and the editor's user sees just that."""

    def seen() -> bool:
        arrow = editor.model.arrow
        return (
            lines(running) == [line] * 4
            and editor.shown == ["stopped"] * 4
            and arrow == (editor.model.focus, line)
            and editor.at_rest
        )

    await editor.until(seen, f"four ranks on line {line}")


async def test_moving_the_focus_resumes_nobody_and_terminated_ends_the_editors_session(
    start_ranks: StartRanks, done: Path
) -> None:
    """Rank 0 runs, ranks 1 to 3 are stopped, and `focus` walks over them.

    `terminated` comes once, when the last rank has ended, and not before.
    """
    ranks = await start_ranks(4, UNEVEN, arguments=[str(done)])
    async with (
        session([rank.port for rank in ranks]) as running,
        live(VSCodeModel({UNEVEN: [HERE]}), running.port, STOCK) as editor,
    ):
        await uneven(editor, running)
        first = editor.model.focus
        assert first in rows(running)[1:]
        for rank in (2, 3, 1, 2):
            editor.ask("focus", {"rank": rank})
            await shows(editor, (rows(running)[rank], HERE))
            await uneven(editor, running)
        assert editor.resumed() == []
        assert not editor.model.notices
        watching = await Driver.attach(running)
        let_end(done)
        await watching.states("exited", "stopped", "stopped", "stopped")
        assert not editor.model.terminated
        editor.send(editor.model.press_f5())
        await editor.until(lambda: editor.model.terminated, "terminated")
        assert [await rank.ended() for rank in ranks] == [0] * 4


async def shows(editor: LiveEditor, arrow: tuple[int, int]) -> None:
    await editor.until(lambda: editor.model.arrow == arrow, f"{arrow} shown")


async def uneven(editor: LiveEditor, running: Session) -> None:
    """Rank 0 runs and the others stand, in truth and in what the user sees.

    At rest: of two stops in one breath VS Code shows the one whose stack comes last.
    """

    def seen() -> bool:
        states = ["running", "stopped", "stopped", "stopped"]
        there = lines(running) == [None, HERE, HERE, HERE] and editor.model.arrow
        return bool(there) and editor.shown == states and editor.at_rest

    await editor.until(seen, "rank 0 running, the others stopped")
