"""`groups`: names for rank sets; `@name` works wherever a rank set does."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec import Struct

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.errors import UsageError
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.types import GroupDefinition, GroupsArguments
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import RankSet, RankSetError, is_name, parse

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
        before = self._core.names.get(name)
        self._core.names[name] = parse(wanted.ranks)
        try:
            self._core.names[name].select(self._core.world(), strict=False)
        except RankSetError:  # it leads to itself
            self._restore(name, before)
            raise
        self._edits.reselect()
        self._tell(request)

    def _restore(self, name: str, before: RankSet | None) -> None:
        del self._core.names[name]
        if before is not None:
            self._core.names[name] = before

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
