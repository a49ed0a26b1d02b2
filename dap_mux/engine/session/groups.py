"""Names of ranks: actors and meshes, as ranks report them, and `groups`, users' rank sets."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.errors import UsageError
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import ActorTold
from dap_mux.pure.protocol.types import GroupDefinition, GroupsArguments
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import RankId, RankSet, RankSetError, is_name, parse

MAX_NAMES: Final = 1024


class Groups(Struct, eq=False):
    """The engine's part that keeps the names."""

    _core: SessionState
    _meshes: Meshes
    _edits: BreakpointEdits

    def groups(self, request: ClientRequest) -> None:
        """`groups`: define one, delete one, or only tell all."""
        arguments = typed(request.arguments, GroupsArguments)
        if arguments.delete is not None:
            self._delete(arguments.delete.removeprefix("@"))
        wanted = arguments.define
        if wanted is None:
            self._tell(request)
            return
        name = _name(wanted.name)
        if len(self._core.names) >= MAX_NAMES and name not in self._core.names:
            raise UsageError(f"there are already {MAX_NAMES} names: delete one first")
        self._meshes.choose(request, wanted.ranks, lambda _: self._define(request, name, wanted))

    def _tell(self, request: ClientRequest) -> None:
        names = sorted(self._core.names.items())
        body: Body = {"groups": [self._entry(name, ranks) for name, ranks in names]}
        to_clients.respond(self._core, request, body)

    def _define(self, request: ClientRequest, name: str, wanted: GroupDefinition) -> None:
        ranks = parse(wanted.ranks)
        names = {**self._core.names, name: ranks}
        ranks.select(replace(self._core.world(), names=names), strict=False)  # not to itself
        self._core.names[name] = ranks
        self._edits.reselect()
        self._tell(request)

    def _delete(self, name: str) -> None:
        if self._core.names.pop(name, None) is None:
            known = ", ".join(f"@{known}" for known in sorted(self._core.names)) or "none"
            raise UsageError(f"no set @{name}; there are {known}")
        self._edits.reselect()

    def _entry(self, name: str, ranks: RankSet) -> Body:
        try:
            members = ranks.select(self._core.world(), strict=False)
        except RankSetError:  # it speaks of a name that is gone
            members = ()
        label = partial(named, self._core)
        return {"name": name, "ranks": label(members), "definition": str(ranks)}


def _name(text: str) -> str:
    name = text.removeprefix("@")
    if not is_name(name):
        raise UsageError(f"{text!r} is not a valid name: use letters, digits, _ and -")
    return name


# The actors that ranks are: their names and meshes, as ranks tell them.
#
# A process may hold actors of several meshes. It is one rank, and they are further names of it,
# with numbers and dimensions of their own. An actor waits until its name is known here, so that
# breakpoints with that name are set before its code runs.

ACTOR: Final = "dap-mux: an actor"  # as in dap_mux/rank/injected/attach/reports.py
TAKEN: Final = "__import__('sys').modules['dap_mux.rank.frameworks.monarch_actors'].taken()"
MAX_ACTOR_NAMES: Final = 65_536  # of all ranks
GATHER_S: Final = 0.02  # an actor waits for it once
MAX_QUESTIONS: Final = 1024  # that one rank's events may have us ask it before it answers


class Actors(Struct, eq=False):
    """The engine's part that learns which actors ranks are."""

    _core: SessionState
    _meshes: Meshes
    _edits: BreakpointEdits
    _told: list[tuple[Rank, ActorTold]] = []

    def told(self, rank: Rank, said: ActorTold) -> None:
        """A rank tells of an actor. Those of a mesh come together, and change it for all ranks."""
        if len(self._told) >= MAX_ACTOR_NAMES:
            return
        if not self._told:
            self._core.after(GATHER_S, self._take)
        self._told.append((rank, said))

    def _take(self) -> None:
        told, self._told = self._told, []
        names = {name for rank, said in told for name in self._note(rank, said)}
        for group in sorted({group for group, _ in names}):
            self._meshes.unite(group)
        if names:
            self._edits.reselect()
        for rank, _ in told:
            if rank.link is not None:
                let_know(self._core, rank, TAKEN)

    def _note(self, rank: Rank, said: ActorTold) -> list[RankId]:
        """Take note of the names that an actor gives a rank; return those that are news."""
        name = self._name(rank, said) if said.name else None
        is_new = name is not None and self._core.also_called(name, rank.rank_id)
        names = [rank.rank_id] if name is None else [rank.rank_id, name]
        learned = [each for each in names if self._meshes.learn_actor(*each, [*said.mesh])]
        return [*learned, *names[1:]] if is_new else learned

    def _name(self, rank: Rank, said: ActorTold) -> RankId | None:
        """Return a name of this rank that no other rank goes by; None where there are too many."""
        group, number = said.name, 1
        while self._is_anothers((group, said.rank), rank):
            number += 1
            group = f"{said.name}-{number}"
        name = (group, said.rank)
        known = self._core.aliases
        return name if name in known or len(known) < MAX_ACTOR_NAMES else None

    def _is_anothers(self, name: RankId, rank: Rank) -> bool:
        other = self._core.mains.get(self._core.aliases.get(name, name))
        return other is not None and other is not rank and other.phase is not Phase.GONE


def let_know(core: SessionState, rank: Rank, expression: str) -> None:
    """Have a rank evaluate this, unless it owes too many answers."""
    if len(rank.connection.pending) < MAX_QUESTIONS:
        arguments: Body = {"expression": expression, "context": "watch"}
        to_ranks.ask(core, rank, "evaluate", arguments, lambda _: None)
