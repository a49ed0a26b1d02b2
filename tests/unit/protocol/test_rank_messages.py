"""What ranks say is decoded where it comes in, or refused there."""

from __future__ import annotations

import pytest
from msgspec import Raw

from dap_mux.engine.session.rank_events import EVENT_TABLE
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.rank_messages import (
    EVENTS,
    Evaluated,
    Stack,
    Threads,
    announces_child,
    event_body,
    read,
    read_text,
)


def test_only_events_that_are_handled() -> None:
    assert EVENTS.keys() <= {event for event, handler in EVENT_TABLE.items() if handler}


@pytest.mark.parametrize("body", [b"", b"null", b"{}"])
def test_an_absent_body(body: bytes) -> None:
    assert read(Raw(body), Threads) == Threads()
    assert event_body("stopped", Raw(body)) == {}


def test_unknown_fields_stay_in_an_event() -> None:
    body = b'{"reason": "step", "threadId": 1, "mood": "fair"}'
    assert event_body("stopped", Raw(body))["mood"] == "fair"


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("stopped", b'{"threadId": "1"}'),
        ("stopped", b'{"threadId": 1, "stackFrames": [{"source": 5}]}'),
        ("output", b'{"output": 5}'),
        ("module", b"{}"),
        ("debugpyAttach", b'{"subProcessId": true}'),
        ("debugpySockets", b'{"sockets": 5}'),
        ("x", b"[" * 100_000 + b"]" * 100_000),
    ],
)
def test_a_malformed_event(event: str, body: bytes) -> None:
    with pytest.raises(PeerFault):
        event_body(event, Raw(body))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"5", Threads),
        (b'{"threads": [{"name": "x"}]}', Threads),
        (b'{"stackFrames": [{"id": "1"}]}', Stack),
        (b'{"result": null}', Evaluated),
    ],
)
def test_a_malformed_answer(body: bytes, kind: type[object]) -> None:
    with pytest.raises(PeerFault):
        read(Raw(body), kind)


@pytest.mark.parametrize("text", ["", "{", "5", "\ud800"])
def test_text_that_is_not_the_json_we_asked_for(text: str) -> None:
    with pytest.raises(PeerFault):
        read_text(text, Evaluated)


@pytest.mark.parametrize(
    ("arguments", "child"),
    [(b'{"configuration": {"subProcessId": 4}}', True), (b"{}", False), (b"[]", False)],
)
def test_start_debugging(arguments: bytes, *, child: bool) -> None:
    assert announces_child(Raw(arguments)) is child
