"""Processes that a fake rank starts, and connections to its adapter that are for one of them.

As measured with debugpy: a child waits until a client has attached to it and configured it; it is
announced once to a client of its parent, and once more to the next one. Nobody's child runs on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.support.fake_rank.rank import FakeRank

Json = dict[str, Any]
# Evaluated in a rank, it starts a Python process; the result is its pid.
START: Final = (
    "__import__('subprocess').Popen([__import__('sys').executable, '-c', 'import time; "
    "time.sleep(30)']).pid"
)


class FakeChildren:
    """The children of one process."""

    def __init__(self, parent: FakeRank) -> None:
        self._parent = parent
        self._by_pid: dict[int, FakeRank] = {}

    def start(self, pid: int) -> FakeRank:
        """The program starts a process that pydevd has patched."""
        child = type(self._parent)(self._parent.number, self._parent.program.path)
        self._by_pid[pid] = child
        child.waits = self._parent.attached_with is not None
        if child.waits:
            self._announce(pid)
        return child

    def start_next(self) -> str:
        """The same, as asked for by `START`."""
        pid = 4242 + len(self._by_pid)
        self.start(pid)
        return str(pid)

    def announce(self) -> None:
        """A client has configured the parent: it is told whom nobody debugs."""
        for pid, child in self._by_pid.items():
            if child.attached_with is None and not child.ended:
                self._announce(pid)

    def _announce(self, pid: int) -> None:
        body = {**(self._parent.attached_with or {}), "name": f"Subprocess {pid}"}
        at = {"host": "127.0.0.1", "port": 5678 + self._parent.number}
        self._parent.event(
            "debugpyAttach", **{**body, "subProcessId": pid, "connect": at, "request": "attach"}
        )

    def all(self) -> Iterator[tuple[int, FakeRank]]:
        """Every child by its pid, children of children too."""
        for pid, child in self._by_pid.items():
            yield pid, child
            yield from child.children.all()


def door(rank: FakeRank) -> FakeRank:
    """A further connection to a rank's adapter, before its `attach` says whom it is for."""
    made = type(rank)(rank.number)
    made.door_to = rank
    return made


def addressed(rank: FakeRank, request: Json) -> FakeRank:
    """Who a connection is for, once a request on it says so: its `attach` may name a child."""
    if request.get("command") != "attach" or not request.get("arguments"):
        return rank
    main = rank.door_to or rank
    pid = request["arguments"].get("subProcessId")
    who = main if pid is None else dict(main.children.all()).get(pid)
    if who is not None and who is not rank and not who.ended:
        who.takes_over(rank)
        return who
    return rank
