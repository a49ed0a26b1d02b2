"""VS Code's ThreadStatusScheduler: a newer state of a thread cancels what its stop set going."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(eq=False)
class Token:
    """The handling of one stop of one thread."""

    cancelled: bool = False


Lookup = set[int | None]
"""What was cancelled while a stop's `threads` was under way; None: everything."""


class StatusQueue:
    """Which stops are being looked up (`threads` is asked) or handled (the stack is asked)."""

    def __init__(self) -> None:
        self._handling: dict[int, Token] = {}
        self._looking_up: list[Lookup] = []

    def look_up(self) -> Lookup:
        """A stop has come; its `threads` is about to be asked."""
        cancelled: Lookup = set()
        self._looking_up.append(cancelled)
        return cancelled

    def handle(self, cancelled: Lookup, threads: Sequence[int]) -> Iterator[tuple[int, Token]]:
        """Its `threads` is answered: yield those of its threads that nothing newer happened to."""
        older = [id(one) for one in self._looking_up].index(id(cancelled))
        for lookup in self._looking_up[:older]:
            lookup.update(threads)
        del self._looking_up[older]
        for thread in threads:
            if not cancelled & {None, thread}:
                self._cancel_handling(thread)
                self._handling[thread] = token = Token()
                yield thread, token

    def cancel(self, thread: int | None) -> None:
        """Cancel what is under way for `thread` (None: for any)."""
        for one in list(self._handling) if thread is None else [thread]:
            self._cancel_handling(one)
        for lookup in self._looking_up:
            lookup.add(thread)

    def _cancel_handling(self, thread: int) -> None:
        if token := self._handling.pop(thread, None):
            token.cancelled = True
