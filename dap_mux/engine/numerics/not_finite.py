"""Has ranks stop at the first value that is not finite, and says what they have found."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from msgspec import Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import NotFinite
from dap_mux.pure.protocol.types import LOCATED, NOT_FINITE
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import arm_for_not_finite

OVERFLOWED = "not finite in step {}, though what each rank sent was finite: its sum overflows"
Armed = tuple[bool, bool]  # whether a rank stops, and whether it locates
OFF: Armed = (False, False)
NOT_LOCATED = (
    "to see the line that made it: `locate on` in the console or the exception filter "
    "Not Finite: Locate, then let it happen again"
)


class Problem(Struct):
    """What keeps a rank from doing so; "" if nothing does."""

    problem: str = ""


class NotFiniteStops(Struct, eq=False):
    """The engine's part for the exception filters `notFinite` and `notFiniteLocated`.

    `_armed`: what ranks were told, by their links; `_steps`: where the last of each was.
    """

    _core: SessionState
    _view: View
    _stops_alone: Callable[[], None]
    _armed: dict[DebuggeeId, tuple[int | None, Armed]] = {}
    _steps: dict[DebuggeeId, int] = {}
    _problems: set[str] = set()

    def chosen(self, rank: Rank, filters: Collection[str]) -> None:
        """Tell a rank what the clients' filters, and the session's options, want of it."""
        settings = self._core.settings
        locates = settings.locate or LOCATED in filters
        armed = (locates or settings.catch_nan or NOT_FINITE in filters, locates)
        link, before = self._armed.get(rank.id, (None, OFF))
        if rank.main is not None or armed == (before if link == rank.link else OFF):
            return
        self._armed[rank.id] = rank.link, armed
        expression = arm_for_not_finite(self._core.injected["guard_switch"], *armed)
        then = partial(self._answered, rank)
        gather_results(self._core, [rank], lambda _: expression, Problem, then)

    def _answered(self, rank: Rank, results: dict[DebuggeeId, Result[Problem]]) -> None:
        ((said, reply),) = results.values()
        problem = reply.problem if said is None else said.problem
        if problem and rank.link is not None and problem not in self._problems:
            self._problems.add(problem)
            name = self._view.name_of(rank)
            say(self._core, f"{name} does not stop at values that are not finite: {problem}")

    def told(self, rank: Rank, said: NotFinite) -> None:
        """A rank is about to stop, or has received it from others: it says what it has found."""
        if not said.stops:
            if said.step > max(self._steps.values(), default=-1):
                self._steps[rank.id] = said.step
                say(self._core, f"{OVERFLOWED.format(said.step)}: {said.text}")
            return
        self._steps[rank.id] = said.step
        self._stops_alone()
        name = self._view.name_of(rank)
        hint = "" if said.made else f"; {NOT_LOCATED}"
        text = f"{name}: not finite: {said.text}, at {said.place}{hint}"
        say(self._core, text, rank, said.made or said.place)
        mains = [each for each in self._core.sorted_mains() if each.phase.live]
        steps = {self._steps.get(each.id) for each in mains}
        if len(mains) > 1 and steps == {said.step}:
            say(
                self._core,
                f"not finite in all {len(mains)} ranks at once, in step {said.step}: look at what "
                "they share (the loss, the learning rate, the data), not at one rank",
            )


def say(core: SessionState, text: str, rank: Rank | None = None, place: str = "") -> None:
    """Print a line at all clients, with a link where `place` is `path:line function` of a rank."""
    body: Body = {"category": "important", "output": f"dap-mux: {text}\n"}
    path, _, line = place.partition(" ")[0].rpartition(":")
    if rank is not None and path and line.isdecimal():
        body["source"] = {"path": paths_of(core, rank).to_local(path) or path}
        body["line"] = int(line)
    to_clients.broadcast(core, "output", body)
