"""Watches what torch knows in the ranks: meshes, compiled code, time-outs of collectives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final

import msgspec
from msgspec import Struct

from dap_mux.engine.breakpoints.store import FUNCTIONS
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import Broadcast, SessionState
from dap_mux.engine.state.threads import coords_of
from dap_mux.engine.values.meshes import OF_TORCH, Meshes
from dap_mux.pure.insight.timeouts import (
    URGENT_S,
    TimeoutReport,
    TimeoutWarning,
    extension,
    timeout_warnings,
)
from dap_mux.pure.protocol.rank_messages import MALFORMED
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import (
    look_at_timeouts,
    look_at_torch,
    put_timeouts_back,
    why_it_does_not_stop,
)

SLOWEST_S: Final = 64.0
BreakpointPlace = tuple[str, int]  # a session's path, and a line


class Seen(msgspec.Struct):
    """What a rank answers; see `torch_state.look`."""

    torch: bool = False
    meshes: list[object] = []
    compiled: list[tuple[str, int, str, str]] = []


# Rows tell the place in a device mesh once there is one, and a breakpoint in code that torch has
# compiled says that it does not stop. Ranks are asked some seconds after they are attached, then
# ever more seldom, and once more after a stop; where torch has not come within a minute, no more.
class LibraryWatch(Struct, eq=False):
    """The engine's part that looks. Nothing of it runs where `library_patience` is 0."""

    _core: SessionState
    _meshes: Meshes
    _breakpoints: Breakpoints
    _known: set[DebuggeeId] = set()
    _timer: int | None = None
    _delay: float = 0.0  # s; 0: nobody is to be looked at
    _torch: bool = False

    def live(self, rank: Rank) -> None:
        """A rank is attached. One that comes back is the one that was looked at."""
        if rank.main is None and rank.id not in self._known:
            self._known.add(rank.id)
            self._soon()

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Look again soon after a stop."""
        if self._torch and self._delay > self._patience and any(rank.stopped for rank in ranks):
            self._soon()

    @property
    def _patience(self) -> float:
        return self._core.settings.library_patience

    def _soon(self) -> None:
        self._delay = self._patience
        if self._delay:
            self._core.cancel(self._timer)
            self._timer = self._core.after(self._delay, self._look)

    def _look(self) -> None:
        self._delay = min(2 * self._delay, SLOWEST_S)
        self._timer = self._core.after(self._delay, self._look)
        live = [rank for rank in self._core.sorted_mains() if rank.phase.live]
        places = {rank.id: self._places(rank) for rank in live}
        meshless = self._without_a_place(live)
        expression = lru_cache(partial(look_at_torch, self._core.injected["torch_state"]))
        gather_results(
            self._core,
            live,
            lambda rank: expression(tuple(places[rank.id]), rank.id[0] in meshless),
            Seen,
            partial(self._learn, places),
        )

    def _without_a_place(self, ranks: list[Rank]) -> set[str]:
        """Return the groups with ranks that no mesh has yet."""
        placed = {rank.id: set(coords_of(self._core, rank)) - {OF_TORCH} for rank in ranks}
        return {id[0] for id, dims in placed.items() if not dims}

    def _places(self, rank: Rank) -> dict[BreakpointPlace, BreakpointPlace]:
        """Return where a rank has breakpoints: its own paths and lines, and whose they are."""
        found: dict[BreakpointPlace, BreakpointPlace] = {}
        paths = paths_of(self._core, rank)
        for place, by_client in self._breakpoints.store.by_place.items():
            remote = paths.to_remote(place) if place != FUNCTIONS else None
            for item in (item for items in by_client.values() for item in items):
                line, wanted = item.states.get(rank.id, {}).get("line"), item.body.get("line")
                if remote and item.verified_in(rank.id) and isinstance(wanted, int):
                    mine = line if isinstance(line, int) else wanted
                    found[remote, mine] = place, wanted
        return found

    def _learn(
        self,
        places: dict[DebuggeeId, dict[BreakpointPlace, BreakpointPlace]],
        results: dict[DebuggeeId, Result[Seen]],
    ) -> None:
        seen = {id: told or Seen() for id, (told, _) in results.items()}
        self._torch = self._torch or any(each.torch for each in seen.values())
        if not self._torch and self._delay == SLOWEST_S:
            self._core.cancel(self._timer)
        by_group: dict[str, dict[DebuggeeId, list[object]]] = {}
        for id, each in seen.items():
            if each.meshes:
                by_group.setdefault(id[0], {})[id] = each.meshes
        for group, told in by_group.items():
            self._meshes.learn(group, told)
        self._compiled(places, seen)

    def _compiled(
        self,
        places: dict[DebuggeeId, dict[BreakpointPlace, BreakpointPlace]],
        seen: dict[DebuggeeId, Seen],
    ) -> None:
        before = dict(self._core.compiled)
        for id in seen:
            for spot in places[id].values():
                self._core.compiled.pop(spot, None)
        for id, each in seen.items():
            for path, line, function, root in each.compiled:
                spot = places[id].get((path, line), ("", 0))
                self._core.compiled[spot] = why_it_does_not_stop(function, root)
        self._core.compiled.pop(("", 0), None)
        changed = set(before.items()) ^ set(self._core.compiled.items())
        for path in sorted({path for (path, _), _ in changed}):
            self._breakpoints.file_changed(path)


# Raises the time-outs of collectives while ranks are stopped, and warns of those that it cannot.
#
# After a stop of some length every rank is asked once, running ones too, because they will wait for
# the stopped ones. Time-outs are raised where possible, until no rank is stopped or stepping any
# more; steps in the meantime cost nothing more. A rank restores its time-outs by itself when its
# debugger leaves (`injected.timeout_probe`).

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

    def _ask(self, ranks: list[Rank], *, extends: bool = True) -> None:
        if self._asked is not None and extends:
            self._asked.update(rank.id for rank in ranks)
        expression = look_at_timeouts(self._core.injected["timeout_probe"], extends=extends)
        gather_results(self._core, ranks, lambda _: expression, TimeoutReport, self._answered)

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
                category = "important" if warning.urgent else "console"
                to_clients.say(self._core, warning.text, category)
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
            to_clients.say(self._core, text)

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
