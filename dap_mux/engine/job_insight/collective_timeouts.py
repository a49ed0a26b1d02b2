"""Raises the time-outs of collectives while ranks are stopped, and warns of those that it cannot.

After a stop of some length every rank is asked once, running ones too, because they will wait for
the stopped ones. Time-outs are raised where possible, until no rank is stopped or stepping any
more; steps in the meantime cost nothing more. A rank restores its time-outs by itself when its
debugger leaves (`injected.timeout_probe`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import Broadcast, SessionState
from dap_mux.pure.insight.timeouts import (
    URGENT_S,
    TimeoutReport,
    TimeoutWarning,
    extension,
    timeout_warnings,
)
from dap_mux.pure.protocol.rank_messages import MALFORMED
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import look_at_timeouts, put_timeouts_back

RESUMED_PAUSE_S: Final = 0.05  # that no rank is stopped, before time-outs are put back
TOLD_ONCE: Final = frozenset({"extension", "slurm", "problem"})  # told once in a session


class CollectiveTimeouts(Struct, eq=False):
    """Asks ranks for their time limits; does nothing if `clock_patience` is 0."""

    _core: SessionState
    _held: set[DebuggeeId] = set()  # stopped, or stepping from one stop to the next
    _timer: int | None = None
    _asked: set[DebuggeeId] | None = None  # in this pause; None: nobody yet
    _reminder: int | None = None
    _told: set[str] = set()  # kinds of warnings

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Ranks have stopped, run on, step or are gone. Lean: a thousand do so at once."""
        patience = self._core.settings.clock_patience
        if not patience:
            return
        before = bool(self._held)
        for rank in ranks:
            waits = rank.stopped or rank.at_barrier is not None or rank.run is not None
            if waits and rank.phase.live:
                self._held.add(rank.id)
            else:
                self._held.discard(rank.id)
        if bool(self._held) is not before:
            # A rank that keeps stopping need not put anything back.
            self._wait(RESUMED_PAUSE_S if before else patience)

    def live(self, rank: Rank) -> None:
        """A rank that comes while others are paused will wait for them too.

        Not asked at once: a tunnel that has just come back may break again, and debugpy's adapter
        ends where it breaks while the rank evaluates (measured).
        """
        if self._asked is not None and rank.main is None:
            self._core.after(self._core.settings.clock_patience, lambda: self._late(rank))

    def _late(self, rank: Rank) -> None:
        if self._asked is not None and rank.phase.live:
            self._ask([rank])

    def _wait(self, seconds: float) -> None:
        self._core.cancel(self._timer)
        self._timer = self._core.after(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        if not self._held:
            self._over()
            return
        if self._asked is None:
            self._asked = set()
        self._ask(self._live())

    def _live(self) -> list[Rank]:
        return [rank for rank in self._core.sorted_mains() if rank.phase.live]

    def _ask(self, ranks: Iterable[Rank], *, extends: bool = True) -> None:
        asked = list(ranks)
        if self._asked is not None and extends:
            self._asked.update(rank.id for rank in asked)
        expression = look_at_timeouts(self._core.injected["timeout_probe"], extends=extends)
        gather_results(self._core, asked, lambda _: expression, TimeoutReport, self._answered)

    def _answered(self, results: dict[DebuggeeId, Result[TimeoutReport]]) -> None:
        if self._asked is None:
            return  # they run on: it is over already
        ranks = self._core.ranks
        told = {
            ranks[id].rank_id: _clocks(*result) for id, result in results.items() if id in ranks
        }
        group = self._core.default_group()
        longer = extension(told, group)
        if longer:
            self._tell_once("extension", longer)
        found = timeout_warnings(told, group)
        for warning in found:
            if warning.kind in TOLD_ONCE and not warning.urgent:
                self._tell_once(warning.kind, warning.text)
            else:
                self._tell(warning.text, urgent=warning.urgent)
        self._remind(found)

    def _remind(self, found: list[TimeoutWarning]) -> None:
        """Warn once more when little time is left."""
        self._core.cancel(self._reminder)
        self._reminder = None
        later = [warning.left for warning in found if warning.left and not warning.urgent]
        if later:
            self._reminder = self._core.after(min(later) - URGENT_S + 1, self._again)

    def _again(self) -> None:
        self._reminder = None
        if self._held:
            self._ask(self._live(), extends=False)

    def _tell_once(self, kind: str, text: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            self._tell(text, urgent=False)

    def _tell(self, text: str, *, urgent: bool) -> None:
        category = "important" if urgent else "console"
        body = {"category": category, "output": f"dap-mux: {text}\n"}
        to_clients.broadcast(self._core, "output", body)

    def _over(self) -> None:
        """No rank is stopped any more."""
        asked, self._asked = self._asked or set(), None
        self._core.cancel(self._reminder)
        self._reminder = None
        expression = put_timeouts_back(self._core.injected["timeout_probe"])
        message = Broadcast("evaluate", {"expression": expression, "context": "watch"})
        requests = to_ranks.Round(self._core, "evaluate", self._undone)
        for id in sorted(asked):
            rank = self._core.ranks.get(id)
            if rank is not None and rank.phase.live:
                requests.ask(rank, message)

    def _undone(self, rank: Rank, reply: Reply) -> None:
        if not reply.ok and rank.phase.live:
            self._core.warn("rank", f"timeouts may still be longer: {reply.problem}", rank)


def _clocks(told: TimeoutReport | None, reply: Reply) -> TimeoutReport:
    """Return what a rank tells; a rank that does not answer has no problem that is known."""
    if told is None and reply.no_reply_reason == MALFORMED:
        return TimeoutReport(problem="malformed response")
    return told or TimeoutReport()
