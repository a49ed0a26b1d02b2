"""Wait until all of several things have happened, or for so long at most."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Generic, TypeVar

from dap_mux.engine.state.session import SessionState

K = TypeVar("K", bound=Hashable)


class Join(Generic[K]):
    """Calls `done` once: when each of `waiting` has arrived, or `limit` seconds later.

    `done` is given those that have not arrived by then, and is called on behalf of the request for
    which the join was made. With nothing to wait for it is called at once.
    """

    def __init__(
        self,
        core: SessionState,
        waiting: Iterable[K],
        done: Callable[[frozenset[K]], None],
        limit: float | None = None,
    ) -> None:
        self._core = core
        self._done = done
        self._cause = core.cause
        self.waiting = set(waiting)
        self.over = not self.waiting
        self._timer: int | None = None
        if self.over:
            done(frozenset())
        elif limit is not None:
            self._timer = core.after(limit, self.end)

    def arrive(self, one: K) -> None:
        """This one needs not be waited for any more; said twice, or too late, it does no harm."""
        if one in self.waiting:
            self.waiting.remove(one)
            if not self.waiting:
                self.end()

    def end(self) -> None:
        """Wait no longer."""
        if not self.over:
            self.over = True
            self._core.cancel(self._timer)
            self._core.later(partial(self._done, frozenset(self.waiting)), self._cause)
