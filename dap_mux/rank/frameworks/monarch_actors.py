"""The actors of Monarch in this process, and what tells the session of them.

`dap_mux.rank.injected.attach.reports` gives the way to tell when a session attaches. An actor
waits until the session has taken note of it: then its breakpoints are set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import debugpy  # noqa: T100

Tell: TypeAlias = Callable[[dict[str, Any]], None]
TAKEN_LIMIT_S = 5.0  # of a session on a busy machine; then the actor goes on


class _Actors:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._known: list[dict[str, Any]] = []
        self._tell: Tell | None = None
        self._told = 0
        self._taken = 0

    def tell_by(self, tell: Tell) -> None:
        """A session has attached: tell it of all actors by this function, and of those to come."""
        with self._changed:
            self._tell, self._told, self._taken = tell, len(self._known), 0
            for actor in self._known:
                tell(actor)

    def taken(self) -> None:
        """The session has taken note of one more."""
        with self._changed:
            self._taken += 1
            self._changed.notify_all()

    def announce(self, actor: dict[str, Any]) -> None:
        """There is this actor: return once the session knows it."""
        with self._changed:
            self._known.append(actor)
            if self._tell is None or not debugpy.is_client_connected():
                return
            self._told += 1
            mine = self._told
            self._tell(actor)
            self._changed.wait_for(lambda: self._taken >= mine, TAKEN_LIMIT_S)

    def lacks(self, name: str, labels: Iterable[str]) -> bool:
        """Whether the actor of this name is known, but one of its dimensions is not."""
        known = {each for one in self._known if one["name"] == name for each in one["mesh"][0]}
        return bool(known) and not known.issuperset(labels)


_actors = _Actors()
announce = _actors.announce
lacks = _actors.lacks
taken = _actors.taken
tell_by = _actors.tell_by
