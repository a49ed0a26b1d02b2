"""The envelope of a DAP message (DAP, "Base Protocol": ProtocolMessage and its three kinds).

A proxy edits, it does not re-model: `arguments` and `body` stay `Raw` JSON, so that unknown
fields survive and a message that needs no change is never decoded.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw

from dap_mux.errors import PeerFault

NO_RAW: Final = Raw()
EMPTY: Final = Raw(b"{}")
_MAX_SEQ: Final = 2**53


class MessageError(PeerFault):
    """The body of a frame is not a DAP message (promise F7)."""


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


_decoder: Final = msgspec.json.Decoder(Message)
_any_decoder: Final = msgspec.json.Decoder()
_encoder: Final = msgspec.json.Encoder()


def decode(body: bytes) -> Message:
    """Return the envelope in `body`; raise `MessageError` for anything else."""
    try:
        if not body.isascii():
            body.decode()  # what stays `Raw` is passed on unread, so it must be text already
        message = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MessageError(f"not a DAP message: {error}") from None
    if not (message.event if message.type == "event" else message.command):
        raise MessageError(f"not a DAP message: {message.type} without a name")
    return message


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
