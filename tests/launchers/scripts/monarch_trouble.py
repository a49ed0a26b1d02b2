"""A job of Monarch with all that may go wrong, and that goes on: a proc that dies is replaced."""

from __future__ import annotations

import os

import monarch.actor
from monarch._rust_bindings.monarch_hyperactor.supervision import SupervisionError
from monarch.actor import Actor, ActorError, current_rank, endpoint, this_host

COUNT = 4


class Worker(Actor):
    """Has endpoints that fail, look and wait."""

    def __init__(self) -> None:
        self.number = current_rank().rank

    @endpoint
    def share(self, by: int) -> float:
        return self.number / by if self.number == 3 else self.number / 2

    @endpoint
    def look(self) -> int:
        found = self.number * 7
        if self.number < 2:
            breakpoint()  # noqa: T100
        return found

    @endpoint
    def renamed(self) -> int:
        return current_rank()["turn"]


class Waiter(Actor):
    """Its endpoints run on an event loop."""

    @endpoint
    async def wait(self, turn: int) -> int:
        return turn + 1


def prepare() -> None:
    """The user's own setup of each proc."""
    os.environ["PREPARED"] = "yes"


def ignore(_failure: object) -> None:
    """A proc that dies is noticed in the call."""


def main() -> None:
    monarch.actor.unhandled_fault_hook = ignore
    procs = this_host().spawn_procs({"at": COUNT}, bootstrap=prepare)
    workers = procs.spawn("worker", Worker)
    try:
        workers.share.call(0).get()
    except ActorError as error:
        print("error", "ZeroDivisionError" in str(error))
    print("looked", *workers.look.call().get().values())
    print("renamed", *workers.rename(at="turn").renamed.call().get().values())
    for attempt in range(2):
        waiters = procs.spawn("waiter", Waiter)
        try:
            print("waited", *waiters.wait.call(attempt).get().values())
        except SupervisionError as error:
            print("lost", type(error).__name__)
            procs = this_host().spawn_procs({"at": COUNT}, bootstrap=prepare)


if __name__ == "__main__":
    main()
