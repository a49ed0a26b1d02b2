"""In which words each kind of client is told what stopped, ran on, came or went.

Pure: a `Picture` in, events out. The same facts need different events, for editors differ in what
they do with a `stopped` (FACTS, "Event patterns measured in real VS Code" and "Other editors").
Who runs is told by `applied`, once the client has applied a stop of all, which it shows by having
its next `threads` (or the stopped thread's `stackTrace`) answered: a `continued` sent earlier
would be overwritten, and a running rank shown as paused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Body: TypeAlias = dict[str, Any]
EventBody: TypeAlias = tuple[str, Body]
Script: TypeAlias = tuple[EventBody, ...]
FEW: Final = 8  # late stoppers told one by one, where that is what the client needs


@dataclass(frozen=True)
class Picture:
    """The rows of a client's view. `details` are the reason and its like of the focus' stop."""

    focus: int
    running: tuple[int, ...] = ()
    details: Body = field(default_factory=lambda: {"reason": "pause"})


def stopped(picture: Picture, thread: int, *, all: bool, hint: bool = False) -> EventBody:
    """One `stopped` event for one row."""
    body = {**picture.details, "threadId": thread, "allThreadsStopped": all}
    return "stopped", body | ({"preserveFocusHint": True} if hint else {})


def continued(thread: int, *, all: bool = False) -> EventBody:
    """One `continued` event; `allThreadsContinued` is always present."""
    return "continued", {"threadId": thread, "allThreadsContinued": all}


def thread(reason: str, id: int) -> EventBody:
    """One `thread` event."""
    return "thread", {"reason": reason, "threadId": id}


def _each(rows: tuple[int, ...]) -> tuple[EventBody, ...]:
    return tuple(continued(row) for row in rows)


class Pattern:
    """VS Code, and every client that takes the protocol at its word."""

    renames = False  # a `thread started` with a known id means a new name, and nothing else
    means_the_row = False  # `continue`, `pause` or a step beside the focus acts on that row alone
    fetches = False  # always fetches the stack of a stop that it has applied; `threads` tells less

    def stop(self, picture: Picture) -> Script:
        """The focus has stopped: the client goes there."""
        return (stopped(picture, picture.focus, all=True),)

    def unseen(self, looked: bool) -> bool:
        """Whether a late stop must be told like a first one; `looked`: it is at its focus."""
        return False

    def late(self, picture: Picture, rows: tuple[int, ...]) -> Script:
        """More rows stopped while the focus stays where it is."""
        return (stopped(picture, picture.focus, all=True, hint=True),)

    def slow(self, picture: Picture, rows: tuple[int, ...]) -> Script:
        """Others arrived from a step and the focus is still under way: it stays the focus."""
        return (stopped(picture, rows[0], all=True, hint=True),)

    def applied(self, picture: Picture, flying: int | None) -> Script:
        """A stop of all has been applied: say who runs, and that the focus (`flying`) steps.

        VS Code moves its focus 0.8 s after a step if the last `continued` named the focus alone.
        """
        if flying is None:
            return _each(picture.running)
        others = tuple(row for row in picture.running if row != flying)
        if others:
            return (continued(flying), *_each(others))
        return (continued(flying), stopped(picture, picture.focus, all=False, hint=True))

    def move(self, picture: Picture, old: int | None) -> Script:
        """The focus moves from row `old` to the picture's; nobody runs on."""
        return self.stop(picture)

    def resume_all(self, focus: int) -> Script:
        """Everything runs on, or a step has begun."""
        return (continued(focus, all=True),)

    def resume_some(self, rows: tuple[int, ...], picture: Picture | None) -> Script:
        """These rows run on while others stay; `picture` is what the focus still shows."""
        return _each(rows)

    def joined(self, row: int, picture: Picture | None) -> Script:
        """A row is new."""
        return (thread("started", row),)

    def left(self, row: int, *, focus: bool) -> Script:
        """A row is gone; `focus`: the client stands there, and a `move` may follow."""
        return (thread("exited", row),)


class VSCode(Pattern):
    """Measured in VS Code 1.100. The thread id is all that a row's own button sends."""

    renames = True
    means_the_row = True

    def unseen(self, looked: bool) -> bool:
        """A stop of the same thread overtakes the first one, and with a hint nothing is focused."""
        return not looked


class Generic(Pattern):
    """Others: before the focus moves away from a row, that row is said to run (nvim-dap's rule)."""

    def move(self, picture: Picture, old: int | None) -> Script:
        """Free the old row first, or a client may resume the new one by itself."""
        first = (continued(old),) if old is not None and old != picture.focus else ()
        return first + self.stop(picture)

    def left(self, row: int, *, focus: bool) -> Script:
        """An `exited` alone does not clear a client's stopped thread."""
        gone = thread("exited", row)
        return (continued(row), gone) if focus else (gone,)


class NvimDap(Generic):
    """It sends `continue` by itself for a `stopped` of another thread, but for reason pause."""

    fetches = True
    means_the_row = True

    def late(self, picture: Picture, rows: tuple[int, ...]) -> Script:
        """Mark each without a jump; `allThreadsStopped` or another reason would resume it."""
        pause = Picture(picture.focus, picture.running, {"reason": "pause"})
        return tuple(stopped(pause, row, all=False) for row in rows)

    def slow(self, picture: Picture, rows: tuple[int, ...]) -> Script:
        """As late stoppers: the focus' own stop follows."""
        return self.late(picture, rows)


class Dape(Generic):
    """It selects the thread of each `stopped`, and drops its arrow at any `continued`.

    It asks `threads` for each `thread` event too, and a `continued` before a stop is applied makes
    it miss that stop.
    """

    fetches = True

    def stop(self, picture: Picture) -> Script:
        """One event for all; who runs follows."""
        return (stopped(picture, picture.focus, all=True),)

    def applied(self, picture: Picture, flying: int | None) -> Script:
        """End with the focus again, for the arrow."""
        again = (stopped(picture, picture.focus, all=False),) if picture.running else ()
        return _each(picture.running) + again

    def late(self, picture: Picture, rows: tuple[int, ...]) -> Script:
        """A few by themselves, the focus last; many as one picture."""
        if len(rows) > FEW:
            return self.stop(picture)
        marks = tuple(stopped(picture, row, all=False) for row in rows)
        return (*marks, stopped(picture, picture.focus, all=False))

    def slow(self, picture: Picture, rows: tuple[int, ...]) -> Script:
        """Nothing marks a row without selecting it: wait for the focus."""
        return ()

    def move(self, picture: Picture, old: int | None) -> Script:
        """A `stopped` is all that it takes."""
        return self.stop(picture)

    def resume_some(self, rows: tuple[int, ...], picture: Picture | None) -> Script:
        """Put the arrow back."""
        arrow = (stopped(picture, picture.focus, all=False),) if picture else ()
        return _each(rows) + arrow

    def joined(self, row: int, picture: Picture | None) -> Script:
        """A new thread sets its mode line to running: put the arrow back."""
        arrow = (stopped(picture, picture.focus, all=False),) if picture else ()
        return (thread("started", row), *arrow)

    def left(self, row: int, *, focus: bool) -> Script:
        """Nothing to free."""
        return (thread("exited", row),)


class Console(Generic):
    """Our own console: its commands name the ranks that they act on."""

    means_the_row = True


PATTERNS: Final = {
    "vscode": VSCode(),
    "neovim": NvimDap(),
    "dape": Dape(),
    "console": Console(),
    "generic": Generic(),
}
KINDS: Final = {
    "vscode": "vscode",
    "neovim": "neovim",
    "nvim-dap": "neovim",
    "dape": "dape",
    "dap-mux console": "console",
}


def pattern_for(client_id: object) -> str:
    """Return the key in `PATTERNS` for the `clientID` of `initialize`."""
    return KINDS.get(client_id, "generic") if isinstance(client_id, str) else "generic"
