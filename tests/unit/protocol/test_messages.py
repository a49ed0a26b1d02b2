"""The envelope: what is a message, what is not, and bodies that are passed on untouched."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import (
    EMPTY,
    NO_RAW,
    Event,
    Message,
    MessageError,
    Request,
    Response,
    decode,
    encode,
    plain,
    raw,
)


def test_a_request() -> None:
    message = decode(b'{"seq":3,"type":"request","command":"next","arguments":{"threadId": 1}}')
    assert (message.seq, message.type, message.command) == (3, "request", "next")
    assert bytes(message.arguments) == b'{"threadId": 1}'
    assert plain(message.arguments) == {"threadId": 1}
    assert message.body == NO_RAW


def test_a_response() -> None:
    message = decode(
        b'{"type":"response","seq":4,"request_seq":3,"success":false,"command":"next",'
        b'"message":"no","body":{"error":{"id":1}}}'
    )
    assert (message.request_seq, message.success, message.message) == (3, False, "no")
    assert plain(message.body) == {"error": {"id": 1}}


def test_an_event() -> None:
    message = decode(b'{"seq":0,"type":"event","event":"initialized","new":[1]}')
    assert (message.event, message.body) == ("initialized", NO_RAW)


NOT_MESSAGES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"request"',
    b"{}",
    b"{} {}",
    b"\xff\xfe",
    b'{"seq":1,"type":"request"}',
    b'{"seq":1,"type":"request","event":"stopped"}',
    b'{"seq":1,"type":"event","command":"next"}',
    b'{"seq":1,"type":"response","success":true,"request_seq":1}',
    b'{"seq":1,"type":"wish","command":"next"}',
    b'{"type":"request","command":"next"}',
    b'{"seq":"1","type":"request","command":"next"}',
    b'{"seq":1.5,"type":"request","command":"next"}',
    b'{"seq":true,"type":"request","command":"next"}',
    b'{"seq":null,"type":"request","command":"next"}',
    b'{"seq":1,"type":"request","command":7}',
    b'{"seq":1,"type":"request","command":"\xc3"}',
    b'{"seq":9007199254740992,"type":"request","command":"next"}',
    b'{"seq":-9007199254740992,"type":"request","command":"next"}',
    b'{"seq":1e400,"type":"request","command":"next"}',
    b'{"seq":1,"type":"request","command":"next","arguments":{]}}',
    b'{"seq":1,"type":"request","command":"next","arguments":{"a":"\xc3"}}',
    b'{"seq":1,"type":"request","command":"next","arguments":' + b"[" * 100_000,
    b'{"seq":1,"type":"response","command":"next","success":1,"request_seq":1}',
    b'{"seq":1,"type":"response","command":"next","success":true,"request_seq":"1"}',
]


@pytest.mark.parametrize("body", NOT_MESSAGES, ids=lambda body: repr(body[:60]))
def test_not_a_message(body: bytes) -> None:
    """One kind of error, which is the peer's fault."""
    with pytest.raises(MessageError, match=r"not a DAP message|out of range") as caught:
        decode(body)
    assert isinstance(caught.value, PeerFault)


@given(st.binary(max_size=80))
def test_noise_is_never_worse_than_an_error(body: bytes) -> None:
    with pytest.raises(MessageError):
        decode(body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


@given(json_values)
def test_a_body_is_passed_on_byte_for_byte(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(" ,", ": ")).encode()
    incoming = decode(b'{"seq":1,"type":"event","event":"x","body":' + text + b"}")
    assert bytes(incoming.body) == text
    assert text in encode(Event(seq=2, event="x", body=incoming.body))


OUTGOING: list[tuple[Request | Event | Response, dict[str, Any]]] = [
    (Request(1, "threads"), {"type": "request", "seq": 1, "command": "threads"}),
    (
        Request(1, "next", raw({"threadId": 1})),
        {"type": "request", "seq": 1, "command": "next", "arguments": {"threadId": 1}},
    ),
    (Event(1, "initialized"), {"type": "event", "seq": 1, "event": "initialized"}),
    (
        Response(2, 1, success=True, command="next"),
        {"type": "response", "seq": 2, "request_seq": 1, "success": True, "command": "next"},
    ),
    (
        Response(2, 1, success=False, command="next", message="no", body=EMPTY),
        {
            "type": "response",
            "seq": 2,
            "request_seq": 1,
            "success": False,
            "command": "next",
            "message": "no",
            "body": {},
        },
    ),
]


@pytest.mark.parametrize(("message", "expected"), OUTGOING)
def test_outgoing(message: Request | Event | Response, expected: dict[str, Any]) -> None:
    assert json.loads(encode(message)) == expected
    assert isinstance(decode(encode(message)), Message)


def test_plain_of_nothing() -> None:
    for nothing in (NO_RAW, EMPTY, raw(None), raw([1]), raw("x"), raw(1)):
        assert plain(nothing) == {}


def test_raw_takes_data_and_leaves_raw_alone() -> None:
    assert bytes(raw({"a": [1, None]})) == b'{"a":[1,null]}'
    ready = msgspec.Raw(b"{ }")
    assert raw(ready) is ready


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"seq":7,"command":"next"}', (7, "next")),
        (b'{"seq":7,"type":"wish","command":"next"}', (7, "next")),
        (b'{"seq":7,"type":"request"}', (7, "")),
        (b'{"seq":7,"type":"request","command":8}', (7, "")),
        (b'{"seq":7,"type":"event"}', (None, "")),
        (b'{"seq":7.5,"type":"request","command":"next"}', (None, "next")),
        (b'{"seq":true,"type":"request","command":"next"}', (None, "next")),
        (b'{"type":"request","command":"next"}', (None, "next")),
        (b"[7]", (None, "")),
        (b"{", (None, "")),
    ],
)
def test_what_could_be_read_of_a_request(body: bytes, found: tuple[int | None, str]) -> None:
    """So that it can be answered before its sender is closed."""
    with pytest.raises(MessageError) as caught:
        decode(body)
    assert (caught.value.seq, caught.value.command) == found


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (rb"\ud800", "\ufffd"),
        (rb"a\udc00\ud800b", "a\ufffd\ufffdb"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\ud800 and \\ud800", "\ufffd and \\ud800"),
        (rb"\ud800\\", "\ufffd\\"),
    ],
)
def test_half_a_character(text: bytes, meant: str) -> None:
    """JSON allows it alone, debugpy sends it, and no encoding of text has it."""
    body = b'{"seq":1,"type":"event","event":"output","body":{"output":"%b"}}' % text
    assert plain(decode(body).body) == {"output": meant}
