"""Framing: every case whole, byte by byte, and with a tail; hostile peers are refused early."""

from __future__ import annotations

import os
import random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import MAX_BODY, MAX_HEADER, Framer, FramingError, encode_frame
from tests.conftest import rounds

MOST_CASES: Final = int(os.environ.get("DAP_MUX_FUZZ_CASES", "1000000"))
MILLION: Final = pytest.param(
    MOST_CASES,
    id="all",
    marks=[
        pytest.mark.heavy,
        pytest.mark.rest,
        pytest.mark.long,
        pytest.mark.slow,
        pytest.mark.timeout(60 + MOST_CASES // 2000),
    ],
)
TAIL: Final = encode_frame(b'{"seq":9}')

GOOD = [
    pytest.param(b"Content-Length: 2\r\n\r\n{}", [b"{}"], id="plain"),
    pytest.param(b"content-length:2\r\n\r\n{}", [b"{}"], id="small letters, no space"),
    pytest.param(b"CONTENT-LENGTH: \t 2 \r\n\r\n{}", [b"{}"], id="capitals, white space"),
    pytest.param(b"Content-Length: 0002\r\n\r\n{}", [b"{}"], id="leading zeros"),
    pytest.param(b"Content-Length: 0\r\n\r\n", [b""], id="empty body"),
    pytest.param(
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}",
        [b"{}"],
        id="content type first",
    ),
    pytest.param(
        b"Content-Length: 2\r\nContent-Type: x\r\n\r\n{}", [b"{}"], id="content type last"
    ),
    pytest.param(encode_frame(b"{}") * 3, [b"{}"] * 3, id="three at once"),
    pytest.param(encode_frame("ü".encode()), ["ü".encode()], id="bytes, not characters"),
    pytest.param(encode_frame(b"\r\n\r\nPOST"), [b"\r\n\r\nPOST"], id="a body may hold anything"),
]

BAD = [
    pytest.param(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="not DAP: POST"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="not DAP: GET"),
    pytest.param(b"CONNECT localhost:22 HTTP/1.1\r\n\r\n", id="not DAP: CONNECT"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="not DAP: HTTP/2"),
    pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="not DAP: TLS hello"),
    pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="not DAP: SSH"),
    pytest.param(b"Host: x\r\nContent-Length: 2\r\n\r\n{}", id="not DAP: Host first"),
    pytest.param(b"Content-Length: 2\r\nHost: x\r\n\r\n{}", id="not DAP: Host last"),
    pytest.param(b"Content-Length: 2\r\nOrigin: http://evil\r\n\r\n{}", id="not DAP: Origin"),
    pytest.param(b"Content-Lengthy: 2\r\n\r\n{}", id="not DAP: a longer name"),
    pytest.param(b"Content-Length : 2\r\n\r\n{}", id="not DAP: a space in the name"),
    pytest.param(b" Content-Length: 2\r\n\r\n{}", id="not DAP: a space before the name"),
    pytest.param(b"Content-Length: 2\r\n folded\r\n\r\n{}", id="not DAP: a folded line"),
    pytest.param(b'{"seq": 1}\r\n\r\n', id="no header"),
    pytest.param(b"\r\n\r\n", id="an empty header"),
    pytest.param(b"\r\nContent-Length: 2\r\n\r\n{}", id="an empty line first"),
    pytest.param(b"\n\n", id="empty lines"),
    pytest.param(b"Content-Length\r\n\r\n{}", id="no colon"),
    pytest.param(b"Content-Type: x\r\n\r\n{}", id="length: none"),
    pytest.param(b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", id="length: two of them"),
    pytest.param(b"Content-Length: 2\r\ncontent-length: 9\r\n\r\n{}", id="length: two values"),
    pytest.param(b"Content-Length: 2, 2\r\n\r\n{}", id="length: a list"),
    pytest.param(b"Content-Length: \r\n\r\n{}", id="length: empty"),
    pytest.param(b"Content-Length: -1\r\n\r\n{}", id="length: negative"),
    pytest.param(b"Content-Length: +2\r\n\r\n{}", id="length: plus sign"),
    pytest.param(b"Content-Length: 0x2\r\n\r\n{}", id="length: hexadecimal"),
    pytest.param(b"Content-Length: 1_0\r\n\r\n{}", id="length: underscore"),
    pytest.param(b"Content-Length: 2.0\r\n\r\n{}", id="length: fraction"),
    pytest.param(b"Content-Length: 2e0\r\n\r\n{}", id="length: exponent"),
    pytest.param(b"Content-Length: 2;q=1\r\n\r\n{}", id="length: parameter"),
    pytest.param("Content-Length: \uff12\r\n\r\n{}".encode(), id="length: a wide digit"),
    pytest.param(b"Content-Length: \xb2\r\n\r\n{}", id="length: a superscript"),
    pytest.param(b"Content-Length: 2\x00\r\n\r\n{}", id="length: NUL"),
    pytest.param(b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1), id="length: a byte too many"),
    pytest.param(b"Content-Length: 17000000\r\n\r\n", id="size: 17 MB"),
    pytest.param(b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", id="length: 5000 digits"),
    pytest.param(b"Content-Length: 2\n\n{}", id="lone LF"),
    pytest.param(b"Content-Length: 2\r\nContent-Type: x\n\r\n\r\n{}", id="lone LF in a value"),
    pytest.param(b"Content-Length: 2\r\r\n\r\n{}", id="lone CR"),
    pytest.param(b"Content-Length: 2\r\n\rContent-Type: x\r\n\r\n{}", id="CR for an end"),
    pytest.param(b"Content-Type: " + b"x" * MAX_HEADER, id="header: one endless line"),
    pytest.param(b"Content-Type: x\r\n" * (MAX_HEADER // 17 + 1), id="header: endless lines"),
]


def fed_bytewise(framer: Framer, data: bytes) -> list[bytes]:
    """Feed one byte at a time."""
    return [body for byte in data for body in framer.feed(bytes([byte]))]


@pytest.mark.parametrize(("data", "bodies"), GOOD)
def test_what_a_peer_may_send(data: bytes, bodies: list[bytes]) -> None:
    """Whole, byte by byte, and with a tail."""
    for feed in (Framer.feed, fed_bytewise):
        framer = Framer()
        assert feed(framer, data) == bodies
        assert framer.waiting_for == ""
    followed = Framer()
    assert followed.feed(data + TAIL[:-3]) == bodies
    assert followed.feed(TAIL[-3:]) == [b'{"seq":9}']


@pytest.mark.parametrize("data", BAD)
def test_what_closes_the_peer(data: bytes) -> None:
    """The same, however it is cut, with a tail, and after a good message."""
    after_one = Framer()
    assert after_one.feed(TAIL) == [b'{"seq":9}']
    for framer, said in ((Framer(), data), (Framer(), data + TAIL), (after_one, data)):
        with pytest.raises(FramingError):
            framer.feed(said)
    with pytest.raises(FramingError):
        fed_bytewise(Framer(), data)


FIRST_WRONG = [
    (b"GET", 1),
    (b"POST / HTTP/1.1\r\n", 1),
    (b"\x16\x03\x01", 1),
    (b"CONNECT x", 4),
    (b"\r\n", 1),
    (b"Content-Length: 2\r\nHost: x", 20),
    (b"Content-Length: 2\n\n", 18),
    (b"Content-Length: +2\r\nContent-Type", 20),
    (b"Content-Length: 99999999\r\nContent-Type", 26),
    (b"Content-Length: 2\r\nContent-Length: 2\r\nC", 38),
]


@pytest.mark.parametrize(("data", "count"), FIRST_WRONG)
def test_refused_at_the_first_wrong_byte_or_line(data: bytes, count: int) -> None:
    """Not only when more comes: such a peer may never send any more."""
    framer = Framer()
    assert framer.feed(data[: count - 1]) == []
    with pytest.raises(FramingError):
        framer.feed(data[count - 1 : count])


def test_a_fault_is_the_peers() -> None:
    with pytest.raises(PeerFault, match=r"not a DAP header: b'GET / HTTP"):
        Framer().feed(b"GET / HTTP/1.1\r\n\r\n")


def test_the_end_of_a_message_is_never_quoted() -> None:
    """A client that counts wrongly: what comes behind is its own, perhaps the token."""
    attach = b'{"seq":2,"type":"request","command":"attach","arguments":{"token":"hunter2"}}'
    for cut in range(1, len(attach)):
        for size in (1, 1000):
            data = TAIL + encode_frame(attach[:-cut]) + attach[-cut:]
            with pytest.raises(FramingError) as caught:
                fed_in_pieces(Framer(), data, size)
            assert str(caught.value) == "not a DAP header after a message: is its length right?"


def test_the_largest_header_and_one_byte_more() -> None:
    length = b"Content-Length: 2\r\n"
    filler = b"Content-Type: ".ljust(MAX_HEADER - len(length), b"x")
    assert Framer().feed(length + filler + b"\r\n\r\n{}") == [b"{}"]
    assert fed_bytewise(Framer(), length + filler + b"\r\n\r\n{}") == [b"{}"]
    with pytest.raises(FramingError, match="longer than 16384 bytes"):
        Framer().feed(length + filler + b"x\r\n\r\n{}")


def fed_in_pieces(framer: Framer, data: bytes, size: int) -> list[bytes]:
    """Feed pieces of `size` bytes."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return [body for piece in pieces for body in framer.feed(piece)]


def test_the_largest_body() -> None:
    body = b"x" * MAX_BODY
    assert fed_in_pieces(Framer(), encode_frame(body), 1 << 20) == [body]


def test_the_limit_can_be_lowered() -> None:
    assert Framer(max_body=2).feed(encode_frame(b"{}")) == [b"{}"]
    with pytest.raises(FramingError, match="message of 3 bytes, the limit is 2"):
        Framer(max_body=2).feed(encode_frame(b"{ }"))


def test_a_length_allocates_nothing() -> None:
    """Only what has come is held."""
    framer = Framer()
    assert framer.feed(b"Content-Length: %d\r\n\r\nx" % MAX_BODY) == []
    assert len(framer._buffer) == 1
    assert framer.waiting_for == "body"


@pytest.mark.parametrize("end", range(1, len(TAIL)))
def test_half_messages_say_what_is_owed(end: int) -> None:
    """A stalled header or body is timed; a pause between messages is no fault."""
    framer = Framer()
    assert framer.waiting_for == ""
    assert framer.feed(TAIL[:end]) == []
    assert framer.waiting_for == ("header" if end < TAIL.index(b"{") else "body")
    assert framer.feed(TAIL[end:]) == [b'{"seq":9}']
    assert framer.waiting_for == ""


@given(st.lists(st.binary(max_size=60), max_size=6), st.lists(st.integers(1, 40), min_size=1))
def test_any_bodies_in_any_pieces(bodies: list[bytes], sizes: list[int]) -> None:
    data = b"".join(map(encode_frame, bodies))
    framer, got, turn = Framer(), [], 0
    while data:
        size = sizes[turn % len(sizes)]
        got += framer.feed(data[:size])
        data, turn = data[size:], turn + 1
    assert got == bodies


@pytest.mark.parametrize("cases", [rounds(20_000), MILLION])
def test_fuzz(cases: int) -> None:
    """Damaged streams never do worse than a FramingError, and chunking changes nothing.

    DAP_MUX_FUZZ_CASES sets how many are drawn by `make test-engines`; the failing seed is in the
    message.
    """
    for seed in range(cases):
        draw = random.Random(seed)
        data = damaged(
            draw, b"".join(encode_frame(draw.randbytes(draw.randrange(20))) for _ in "ab")
        )
        whole = outcome(data, len(data) or 1)
        assert outcome(data, draw.randrange(1, 8)) == whole, f"seed {seed}: {data!r}"


PIECES: Final = [
    b"\r\n",
    b"\r",
    b"\n",
    b":",
    b" ",
    b"-",
    b"0",
    b"Content-Length: 5",
    b"Host: x",
    b"\xff",
]


def damaged(draw: random.Random, data: bytes) -> bytes:
    """Return `data` with up to three cuts, flips, repeats or insertions."""
    for _ in range(draw.randrange(4)):
        at, end = sorted(draw.choices(range(len(data) + 1), k=2))
        middle = draw.choice([b"", data[at:end] * 2, draw.choice(PIECES), draw.randbytes(3)])
        data = data[:at] + middle + data[end if draw.random() < 0.5 else at :]
    return data


def outcome(data: bytes, size: int) -> str:
    """Return what becomes of a stream that is cut in pieces of `size`.

    Bodies in front of a fault are not compared: in one piece with it they are lost with the peer.
    """
    framer = Framer()
    try:
        bodies = fed_in_pieces(framer, data, size)
    except FramingError:
        return "refused"
    return f"{bodies} then {framer.waiting_for}"


@pytest.mark.parametrize("size", [0, 1, 9, 10, 99, 100, 999, 1000, 9999, 10_000])
def test_a_read_of_one_message_is_taken_whole(size: int) -> None:
    """Sizes beside those at which the header grows, where none has the length between."""
    frame = encode_frame(b"x" * size)
    assert Framer().whole(frame) == b"x" * size
    for other in (frame + b"C", frame[:-1], frame + frame, frame.lower(), b""):
        assert Framer().whole(other) is None, other[:30]
    assert Framer(max_body=size - 1).whole(frame) is None


def test_what_others_wait_for_is_not_taken_whole() -> None:
    frame = encode_frame(b"{}")
    for begun in (frame[:5], frame[:-1]):
        framer = Framer()
        assert framer.feed(begun) == []
        assert framer.whole(frame) is None
    framer = Framer()
    assert framer.feed(encode_frame(frame)[: -len(frame)]) == []
    assert framer.whole(frame) is None, "it is the body"
    assert framer.feed(frame) == [frame]
