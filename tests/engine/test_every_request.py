"""Every request, with right and wrong arguments, in every phase: one answer each, no harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from msgspec import inspect

from dap_mux.engine.routes import ROUTES
from tests.engine.scenes import attach, attached, introduced, stopped
from tests.support.clients.argument_cases import Ids, cases
from tests.support.clients.argument_cases import right as right_for
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

RIGHT: Final = right_for(PATH)
RANKS: Final = 2
Scene = Callable[[Playbook], Client]


def _new(book: Playbook) -> Client:
    return book.client()


def _configuring(book: Playbook) -> Client:
    client = introduced(book)
    client.ask("attach", justMyCode=True)
    return client


def _left(book: Playbook) -> Client:
    client = attached(book)
    client.ask("disconnect")
    return client


PHASES: Final[dict[str, Scene]] = {
    "new": _new,
    "initialised": introduced,
    "configuring": _configuring,
    "stopped": stopped,
    "running": attached,
    "left": _left,
}


class Door:
    """A session in one phase, made anew when a request has taken it out of that."""

    def __init__(self, phase: str) -> None:
        self._phase = phase
        self._open()

    def _open(self) -> None:
        self.book = Playbook(RANKS)
        self.other = self.book.client("other")
        attach(self.other, role="observer")
        self.client = PHASES[self._phase](self.book)
        self.ids = self._ids() if self._phase == "stopped" else Ids()
        self._state = self._now()

    def _ids(self) -> Ids:
        ask, thread = self.client.ask, self.book.thread(0)
        frame = ask("stackTrace", threadId=thread).body["stackFrames"][0]["id"]
        scopes = ask("scopes", frameId=frame).body["scopes"]
        targets = ask("gotoTargets", source={"path": PATH}, line=6).body["targets"]
        inner = ask("stepInTargets", frameId=frame).body["targets"]
        return Ids(thread, frame, scopes[0]["variablesReference"], targets[0]["id"], inner[0]["id"])

    def _now(self) -> object:
        ranks = self.book.engine.core.ranks.values()
        client = self.book.engine.core.clients.get(self.client._number)
        role = client and (client.initialized, client.role, client.configured)
        return self.client.closed, role, [(rank.state, rank.stop) for rank in ranks]

    def knock(self, command: str, arguments: object) -> None:
        """Send one request, and see that nothing but its answer comes of it."""
        book, client = self.book, self.client
        told = len(self.other.events)
        answer = client.ask_wrongly(command, arguments)
        if answer.response is None and not client.closed:
            self._let_answer(command)
        assert self._phase == "left" or answer.response is not None, (command, arguments)
        assert len(self.other.events) == told
        assert not self.other.closed
        assert not any(rank.dead for rank in book.ranks.values()), (command, arguments)
        assert not book.engine.core.faults, (command, arguments)
        assert self._phase != "new" or client.closed or command == "initialize"
        if self._now() != self._state:
            assert self.other.ask("list").body["counts"]["lost"] == 0
            self._open()

    def _let_answer(self, command: str) -> None:
        """`attach` waits for `configurationDone`; some of ours wait for ranks."""
        if command in ("attach", "launch"):
            self.client.ask("configurationDone")
        self.book.wait(10)


def test_right_arguments_are_whole() -> None:
    """They name every field that the table knows, so that each is tried."""
    assert set(RIGHT) == {name for name, route in ROUTES.items() if route.handler}
    for command, make in RIGHT.items():
        info = inspect.type_info(ROUTES[command].arguments)
        assert isinstance(info, inspect.StructType)
        missing = {field.encode_name for field in info.fields} - make(Ids()).keys()
        assert missing <= {"adapterData"}, command


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("phase", PHASES)
def test_every_request(phase: str) -> None:
    door = Door(phase)
    for command in ROUTES:
        right = RIGHT[command](door.ids) if command in RIGHT else {"threadId": 1}
        for arguments in cases(right):
            door.knock(command, arguments)
