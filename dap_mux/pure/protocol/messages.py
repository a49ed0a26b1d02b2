"""The envelope of a DAP message (DAP, "Base Protocol": ProtocolMessage and its three kinds).

A proxy edits, it does not re-model: `arguments` and `body` stay `Raw` JSON, so that unknown
fields survive and a message that needs no change is never decoded.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw

from dap_mux.pure.errors import PeerFault

Body: TypeAlias = dict[str, Any]
"""A body, or arguments, that handlers build or change."""

NO_RAW: Final = Raw()
EMPTY: Final = Raw(b"{}")
_MAX_SEQ: Final = 2**53
_PAIR: Final = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = rb"(?s)\\(?:%b|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)" % _PAIR


class MessageError(PeerFault):
    """The body of a frame is not a DAP message.

    `seq` and `command` are those of a request, as far as they could be read.
    """

    def __init__(self, problem: str, seq: int | None = None, command: str = "") -> None:
        super().__init__(problem)
        self.seq = seq
        self.command = command


class Message(msgspec.Struct, gc=False):
    """Any incoming message. Fields that its kind lacks keep their defaults."""

    seq: Annotated[int, Meta(gt=-_MAX_SEQ, lt=_MAX_SEQ)]
    type: Literal["request", "response", "event"]
    command: str = ""
    event: str = ""
    request_seq: int = 0
    success: bool = False
    message: str = ""
    arguments: Raw = NO_RAW
    body: Raw = NO_RAW


class Request(msgspec.Struct, omit_defaults=True, tag_field="type", tag="request", gc=False):
    """An outgoing request."""

    seq: int
    command: str
    arguments: Raw | dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class Event(msgspec.Struct, omit_defaults=True, tag_field="type", tag="event", gc=False):
    """An outgoing event."""

    seq: int
    event: str
    body: Raw | msgspec.UnsetType = msgspec.UNSET


class Response(msgspec.Struct, omit_defaults=True, tag_field="type", tag="response", gc=False):
    """An outgoing response."""

    seq: int
    request_seq: int
    success: bool
    command: str
    message: str | msgspec.UnsetType = msgspec.UNSET
    body: Raw | dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


_decode: Final = msgspec.json.Decoder(Message).decode
_any_decoder: Final = msgspec.json.Decoder()
_encoder: Final = msgspec.json.Encoder()


def decode(body: bytes) -> Message:
    """Return the envelope in `body`; raise `MessageError` for anything else."""
    try:
        if not body.isascii():
            body.decode()  # what stays `Raw` is passed on unread, so it must be text already
        message = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = _decode_halves(body, error)
    if not (message.event if message.type == "event" else message.command):
        seq = message.seq if message.type == "request" else None
        raise MessageError(f"not a DAP message: {message.type} without a name", seq)
    return message


def _decode_halves(body: bytes, error: Exception) -> Message:
    """Decode what failed by this, if halves of characters were all that was wrong with it."""
    if type(error) is msgspec.DecodeError and b"\\u" in body:
        try:
            return _decode(re.sub(_ESCAPE, _whole_character, body))
        except (msgspec.DecodeError, RecursionError) as other:
            error = other
    raise MessageError(f"not a DAP message: {error}", *_request_in(body)) from None


def _whole_character(escape: re.Match[bytes]) -> bytes:
    """Half of a character alone, as JSON allows it and no encoding of text does, is U+FFFD."""
    return b"\\ufffd" if escape["half"] else escape[0]


def _request_in(body: bytes) -> tuple[int | None, str]:
    """Return the `seq` and the command of what may have been meant as a request."""
    try:
        found = _any_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, ""
    if not isinstance(found, dict) or found.get("type", "request") in ("response", "event"):
        return None, ""
    seq, command = found.get("seq"), found.get("command")
    answerable = type(seq) is int and abs(seq) < _MAX_SEQ
    return seq if answerable else None, command if isinstance(command, str) else ""


def encode(message: Request | Event | Response) -> bytes:
    """Return `message` as UTF-8 JSON, ready for `encode_frame`."""
    return _encoder.encode(message)


def raw(value: object) -> Raw:
    """Encode plain data (or a `Struct`) as `Raw` JSON."""
    return value if isinstance(value, Raw) else Raw(_encoder.encode(value))


def plain(value: Raw) -> dict[str, Any]:
    """Decode a body or arguments to a dict; absent, null or not an object gives {}.

    Raises `MessageError` where only the envelope was valid.
    """
    if not value:
        return {}
    try:
        decoded = _any_decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MessageError(f"not valid JSON: {error}") from None
    return decoded if isinstance(decoded, dict) else {}
