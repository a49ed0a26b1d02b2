"""The ranks' own meshes: read from them when a rank set names a dimension that is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View, coords_of
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.pure.errors import PeerFault, StaleHandle, UsageError
from dap_mux.pure.insight.device_mesh import mesh_of, united
from dap_mux.pure.rank_sets import RankSet, UnknownDimension, parse
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import meshes

OF_TORCH: Final = "torch_rank"  # a dimension: the rank that torch.distributed knows
MAX_MESHES: Final = 32  # of one actor: by how many names its dimensions go
Chosen = Callable[[list[Rank]], None]


# The frameless evaluate works while a rank runs, even blocked in a collective, so nobody is stopped
# for it. What was read stays until it is read again: a mesh that the job has renamed or reshaped
# shows up with the first rank set that speaks of it.
class Meshes(Struct, eq=False):
    """The engine's part that knows where ranks are, and so which ranks a rank set means."""

    _core: SessionState
    _view: View
    _client_events: ClientEvents
    _waiting: dict[str, list[tuple[Callable[[], None], ClientRequest | None]]] = {}
    _told: dict[str, dict[int, list[object]]] = {}  # by group, what ranks have told
    _of_actors: dict[str, dict[int, list[object]]] = {}  # and what they are as actors

    def choose(self, request: ClientRequest, text: str, then: Chosen) -> None:
        """Call `then` with the ranks that a client's rank set means; refuse what means nothing.

        At once where that can be, else when the ranks have told their mesh.
        """
        ranks = parse(text)
        try:
            chosen = self._select(ranks)
        except UnknownDimension as error:
            self.read(error.group, lambda: self._again(request, ranks, then))
        else:
            then(chosen)

    def _again(self, request: ClientRequest, ranks: RankSet, then: Chosen) -> None:
        try:
            then(self._select(ranks))
        except (UsageError, StaleHandle, PeerFault) as error:
            if not request.answered:
                to_clients.refuse(self._core, request, str(error))

    def _select(self, ranks: RankSet) -> list[Rank]:
        return [self._core.ranks[id] for id in ranks.select(self._core.world())]

    def read(self, group: str, then: Callable[[], None]) -> None:
        """Ask every attached rank of a group for its meshes; call `then` when that is known."""
        waiting = self._waiting.setdefault(group, [])
        waiting.append((then, self._core.cause))
        if len(waiting) > 1:
            return
        live = [rank for rank in self._members(group) if rank.phase.live]
        expression = meshes(self._core.injected["torch_state"])
        gather_results(
            self._core, live, lambda _: expression, object, partial(self._learned, group)
        )

    def _members(self, group: str) -> list[Rank]:
        return [rank for rank in self._core.sorted_mains() if rank.id[0] == group]

    def _learned(self, group: str, results: dict[DebuggeeId, Result[object]]) -> None:
        waiting = self._waiting.pop(group)
        self.learn(group, {id: report for id, (report, _) in results.items()})
        for then, cause in waiting:
            self._core.later(then, cause)

    def learn(self, group: str, reports: Mapping[DebuggeeId, object]) -> None:
        """Take what ranks of a group say of their meshes, which is what holds from now on."""
        listed = {id[1]: each for id, each in reports.items() if isinstance(each, list)}
        self._told[group] = _told(listed)
        self.unite(group)

    def learn_actor(self, group: str, number: int, mesh: list[object]) -> bool:
        """Take the mesh of an actor, in which it has this number; return whether that is news.

        `unite` then has to be called for the group.
        """
        known = self._of_actors.setdefault(group, {}).setdefault(number, [])
        if mesh in known or len(known) >= MAX_MESHES:
            return False
        known.append(mesh)
        return True

    def unite(self, group: str) -> None:
        """Lay a group out as its ranks and actors have told."""
        members = self._members(group)
        before = [coords_of(self._core, rank) for rank in members]
        numbers = sorted(self._core.world().named.get(group, ()))
        told, actors = self._told.get(group, {}), self._of_actors.get(group, {})
        reports = {rank: [*actors.get(rank, ()), *told.get(rank, ())] for rank in {*told, *actors}}
        found = mesh_of(reports, numbers)
        mesh = united(self._core.settings.meshes.get(group), found, numbers)
        self._core.found_meshes.pop(group, None)
        if found and mesh:
            self._core.found_meshes[group] = mesh
        for rank, place in zip(members, before, strict=True):
            if coords_of(self._core, rank) != place:
                for one in (rank, *self._core.workers_of(rank)):
                    self._renamed(one)

    def _renamed(self, rank: Rank) -> None:
        """A rank's row tells its place, which is another now: have the names read again."""
        self._core.touch(rank)
        if self._view.mode() == "ranks" and rank.phase.live:
            self._client_events.joined(rank)


def _told(reports: dict[int, list[Any]]) -> dict[int, list[Any]]:
    """Return what ranks say, but for torch's ranks where those are the session's own."""
    kept = {
        rank: [mesh for mesh in report if mesh[:1] == [[OF_TORCH]]]
        for rank, report in reports.items()
        if all(isinstance(mesh, list) for mesh in report)
    }
    if any(mesh[2:] != [[rank]] for rank, found in kept.items() for mesh in found):
        return reports
    return {
        rank: [mesh for mesh in report if mesh not in kept.get(rank, ())]
        for rank, report in reports.items()
    }
