"""What ranks print, on its way to the clients: held, folded, and sent when it is due."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dap_mux.engine.events.output.merged_output import OutputFolder
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.rank_sets.debuggees import DebuggeeId, label


class RankOutput:
    """The engine's part that sends the ranks' output; it keeps the folder's time."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._folder = OutputFolder(core.settings.settle, core.settings.line_patience, self._label)
        self._timer: int | None = None

    def _label(self, ranks: Iterable[DebuggeeId]) -> str:
        """Return the prefix of a line: ranks, with their group where there are several."""
        named = sorted(ranks)
        alone = self._core.several_groups and len({id[0] for id in named}) == 1
        text = label(named, self._core.default_group())
        return f"{named[0][0]}:{text}" if alone else text

    def add(self, rank: Rank, category: str, text: str, rest: Body) -> None:
        """A rank has printed this; `rest` are the other fields of the event's body."""
        self._folder.plain = self._core.single
        self._folder.add(rank.id, category, text, rest)
        self._arrange_flush()

    def _arrange_flush(self) -> None:
        if self._folder.urgent:
            self.flush()
        elif self._folder.pending and self._timer is None:
            self._timer = self._core.after(self._folder.tick, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.flush()

    def flush(self, *, everything: bool = False, said_by: Collection[DebuggeeId] = ()) -> None:
        """Send what is due (`OutputFolder.flush`)."""
        for body, _ in self._folder.flush(everything=everything, said_by=said_by):
            to_clients.broadcast_output(self._core, body)
        self._arrange_flush()

    def close(self, rank: Rank) -> None:
        """The rank is gone: its unfinished line will not be finished."""
        self._folder.close(rank.id)
        self.flush()
