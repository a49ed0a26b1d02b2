"""Look now and then at what torch has come to know in the ranks, so that nobody has to ask.

Rows tell the place in a device mesh once there is one, and a breakpoint in code that torch has
compiled says that it does not stop. Ranks are asked some seconds after they are attached, then
ever more seldom, and once more after a stop; where torch has not come within a minute, no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final

import msgspec
from msgspec import Struct

from dap_mux.engine.breakpoints.store import FUNCTIONS
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import coords_of
from dap_mux.engine.values.meshes import OF_TORCH, Meshes
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import look_at_torch, why_it_does_not_stop

SLOWEST_S: Final = 64.0
BreakpointPlace = tuple[str, int]  # a session's path, and a line


class Seen(msgspec.Struct):
    """What a rank answers; see `torch_state.look`."""

    torch: bool = False
    meshes: list[object] = []
    compiled: list[tuple[str, int, str, str]] = []


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
