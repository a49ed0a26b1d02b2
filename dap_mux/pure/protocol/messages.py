"""The envelope of a DAP message (DAP, "Base Protocol"), and its framing.

A proxy edits, it does not re-model: `arguments` and `body` stay `Raw` JSON, so that unknown
fields survive and a message that needs no change is never decoded.
"""

from __future__ import annotations

import re
from functools import lru_cache
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


# Content-Length framing (DAP, "Base Protocol"), written for peers that may be hostile.
#
# It accepts a header block of at most 16 KiB, one plain decimal length, a body of at most 16 MiB by
# default, never allocated ahead, and no header but Content-Length and Content-Type. Anything else
# (HTTP, TLS, noise) is refused at its first wrong byte.

MAX_HEADER: Final = 16 * 1024
MAX_BODY: Final = 16 * 1024 * 1024
_HEADER: Final = b"Content-Length: %d\r\n\r\n"
_NEWLINE: Final = b"\r\n"
_USUAL: Final = re.compile(rb"Content-Length: ([0-9]{1,12})\r\n\r\n")  # the usual header
_LENGTH: Final = b"content-length"
_ALLOWED: Final = (b"content-length:", b"content-type:")


class FramingError(PeerFault):
    """The peer does not use DAP framing; `str(error)` names the fault."""


def encode_frame(body: bytes) -> bytes:
    """Return `body` (one JSON message, UTF-8) behind its header."""
    return b"%b%b" % (_HEADER % len(body), body)


@lru_cache(maxsize=1024)
def _header_of(size: int) -> bytes:
    """Return the usual header of the only message of this size, header included; b"" for none."""
    longest = max(0, size - len(_HEADER % 0))
    bodies = range(max(0, longest - len(str(longest))), longest + 1)
    return next((head for body in bodies if len(head := _HEADER % body) + body == size), b"")


class Framer:
    """Cuts a byte stream into message bodies, however the bytes are chunked."""

    __slots__ = (
        "_begun",
        "_buffer",
        "_length",
        "_line",
        "_max_body",
        "_need",
        "between",
    )

    def __init__(self, *, max_body: int = MAX_BODY) -> None:
        self._max_body = max_body
        self._buffer = bytearray()
        self._line = 0  # where the unfinished header line starts: no line is read twice
        self._length = -1  # what the header said so far, else -1
        self._need = -1  # body length once the header is read, else -1
        self._begun = False  # a message has been read
        self.between = True  # messages: none is incomplete

    def allow(self, max_body: int) -> None:
        """Change the body limit from the next header on: little before `initialize`."""
        self._max_body = max_body

    @property
    def waiting_for(self) -> str:
        """The part of a message that is incomplete: 'body', 'header' or '' for none."""
        if self._need >= 0:
            return "body"
        return "header" if self._buffer else ""

    def whole(self, data: bytes) -> bytes | None:
        """Return the body if `data` is one message, and nothing else is waited for; else None.

        Then it is to be fed. Lean: most reads are like that, and a thousand come at once.
        """
        size = len(data)
        header = _header_of(size)
        if not header or not data.startswith(header) or size > self._max_body:
            return None  # `feed` says whether it is too long without its header
        if not self.between:
            return None
        self._begun = True
        return data[len(header) :]

    def feed(self, data: bytes) -> list[bytes]:
        """Return the bodies that `data` completes; raise `FramingError` at the first wrong byte."""
        bodies: list[bytes] = []
        if self.between:
            # Whole messages, as most reads are, need no copy to the buffer.
            at, end = 0, len(data)
            while usual := _USUAL.match(data, at):
                start = usual.end()
                stop = start + int(usual[1])
                if stop > end or stop - start > self._max_body:
                    break
                bodies.append(data[start:stop])
                self._begun = True
                if stop == end:
                    return bodies
                at = stop
            data = data[at:]
        self._buffer += data
        while (self._buffer or not self._need) and (body := self._next()) is not None:
            bodies.append(body)
        self.between = self._need < 0 and not self._buffer
        return bodies

    def _next(self) -> bytes | None:
        if self._need < 0 and not self._read_header():
            return None
        if len(self._buffer) < self._need:
            return None
        body = bytes(memoryview(self._buffer)[: self._need])
        del self._buffer[: self._need]
        self._need = -1
        self._begun = True
        return body

    def _read_header(self) -> bool:
        while (end := self._buffer.find(_NEWLINE, self._line)) >= 0:
            self._check_size(end - len(_NEWLINE))
            line = bytes(self._buffer[self._line : end])
            self._line = end + len(_NEWLINE)
            if not line:
                self._finish_header()
                return True
            self._take_line(line)
        self._check_unfinished()
        return False

    def _take_line(self, line: bytes) -> None:
        self._check_line_start(line)
        name, colon, value = line.partition(b":")
        if not colon:
            raise self._no_header(line)
        if name.lower() == _LENGTH:
            if self._length >= 0:
                raise FramingError("two Content-Length headers, expected one")
            self._length = _number(value.strip(b" \t"), self._max_body)

    def _finish_header(self) -> None:
        if self._length < 0:
            raise FramingError("no Content-Length header")
        del self._buffer[: self._line]
        self._need, self._length, self._line = self._length, -1, 0

    def _check_unfinished(self) -> None:
        self._check_size(len(self._buffer) - 2 * len(_NEWLINE) + 1)  # all but the end's last byte
        line = bytes(self._buffer[self._line :])
        if line != b"\r" or not self._line:  # else half of the header's end
            self._check_line_start(line)

    def _check_size(self, size: int) -> None:
        if size > MAX_HEADER:
            raise FramingError(f"header block longer than {MAX_HEADER} bytes")

    def _check_line_start(self, line: bytes) -> None:
        start = line[:15].lower()
        known = any(name.startswith(start) or start.startswith(name) for name in _ALLOWED)
        if not known or b"\n" in line or b"\r" in line[:-1]:
            raise self._no_header(line)

    def _no_header(self, line: bytes) -> FramingError:
        """Quote only a peer's first bytes: later ones may be part of a message, and secret."""
        if self._begun:
            return FramingError("not a DAP header after a message: is its length right?")
        return FramingError(f"not a DAP header: {line[:40]!r}")


def _number(text: bytes, limit: int) -> int:
    if not text.isdigit() or len(text) > 12:
        raise FramingError(f"Content-Length is not a number: {text[:40]!r}")
    if int(text) > limit:
        raise FramingError(f"message of {int(text)} bytes, the limit is {limit}")
    return int(text)
