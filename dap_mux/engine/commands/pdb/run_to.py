"""`unt FILE:LINE`: each rank named runs on to that line, wherever it is now."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.breakpoints.sync import OWN
from dap_mux.engine.commands.pdb.command import RUNNING, Invocation, problem_of
from dap_mux.engine.evaluate.replies import Answer
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.stops.control import Control, held
from dap_mux.errors import UsageError
from dap_mux.pathmap import is_windows

PLACE: Final = re.compile(r"(?P<file>.+):\s*(?P<line>\d+)")
HELD: Final = (
    "is held at an uncaught exception, and ends when it runs on: name it alone, or use `release`"
)
STOPPED: Final = "stopped"
NOWHERE: Final = "has no code there, so it stays"
_LIMIT: Final = 5.0  # s


def place_of(invocation: Invocation) -> tuple[str, int] | None:
    """Return the file and line of an argument, None where it names no file. Raises UsageError."""
    match = PLACE.fullmatch(invocation.argument)
    if match is None:
        return None
    file = match["file"].strip()
    if not (file.startswith(("/", "file:")) or is_windows(file)):
        raise UsageError(f"'unt' needs the full path of a file, not {file!r}")
    return (
        invocation.client.translation.path(file) if invocation.client.translation else file
    ), int(match["line"])


class RunTo:
    """A breakpoint for one stop, and on. Who cannot have the breakpoint stays where it is."""

    def __init__(
        self, edits: BreakpointEdits, control: Control, invocation: Invocation, path: str, line: int
    ):
        self._edits = edits
        self._control = control
        self._path = path
        self._limit = min(_LIMIT, invocation.timeout * 0.9)
        self._collector = invocation.collector()
        ready = [rank for rank in invocation.ranks if self._may(invocation, rank)]
        self._stops = {rank.id: rank.stop for rank in ready}
        if ready:
            item = edits.make(OWN, path, {"line": line}, ready, "stop")
            edits.send(path, ready, partial(self._in_place, item, ready), self._limit)

    def _may(self, invocation: Invocation, rank: Rank) -> bool:
        alone = len(invocation.ranks) == 1
        if not rank.phase.live:
            self._collector.fail(rank.rank_id, problem_of(rank, invocation.command))
        elif held(rank) and not alone:
            self._collector.fail(rank.rank_id, HELD)
        else:
            return True
        return False

    def _in_place(self, item: Breakpoint, ranks: list[Rank]) -> None:
        there = [rank for rank in ranks if self._has_stopped(rank)]
        ready = [rank for rank in ranks if rank not in there and item.verified_in(rank.id)]
        self._give_up(item, [rank for rank in ranks if rank not in there + ready])
        resumed = self._control.resume(ready)
        for rank in there:
            self._collector.answer(rank.rank_id, Answer(STOPPED))
        for rank in ready:
            self._collector.answer(rank.rank_id, Answer(RUNNING))
        self._control.tell_resumed(resumed)

    def _has_stopped(self, rank: Rank) -> bool:
        """Whether it ran, and stands by now: on that line or before it, its one stop is over."""
        return rank.stop is not None and rank.stop is not self._stops[rank.id]

    def _give_up(self, item: Breakpoint, ranks: list[Rank]) -> None:
        for rank in ranks:
            why = item.states.get(rank.id, {}).get("message")
            self._collector.fail(rank.rank_id, f"{NOWHERE}: {why}" if why else NOWHERE)
        if ranks:
            self._edits.cut(self._path, item, {rank.rank_id for rank in ranks})
            self._edits.send(self._path, ranks, lambda: None, self._limit)
