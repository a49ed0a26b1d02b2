"""The first message of a connection, however it comes."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from dap_mux.rank.dap_message import (
    MAX_MESSAGE,
    NoMessage,
    message_in,
    missing,
    read_message,
    write_message,
)

Pair = tuple[socket.socket, socket.socket]
MESSAGE = {"seq": 1, "type": "request", "command": "initialize"}


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_no_byte_behind_it_is_read_where_they_are_somebody_elses(pair: Pair) -> None:
    write_message(pair[1], MESSAGE)
    pair[1].sendall(b"behind")
    assert read_message(pair[0]) == MESSAGE
    assert pair[0].recv(100) == b"behind"


def test_what_was_read_behind_it_does_not_matter(pair: Pair) -> None:
    write_message(pair[1], MESSAGE)
    read = pair[0].recv(4096) + b"behind"
    assert (missing(read), message_in(read)) == (0, MESSAGE)


def test_further_headers_count_for_nothing(pair: Pair) -> None:
    pair[1].sendall(b"content-LENGTH: 2\r\nContent-Type: any\r\n\r\n{}")
    assert read_message(pair[0]) == {}


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n",
        b"Content-Length: x\r\n\r\n",
        b"Content-Length: -2\r\n\r\n{}",
        b"Content-Length: %b\r\n\r\n{}" % (b"9" * 5000),
        b"Content-Length: %d\r\n\r\n" % (MAX_MESSAGE + 1),
        b"Content-Length: 1\r\n" * (MAX_MESSAGE // 19 + 1),
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 2\r\n\r\n}{",
        b"Content-Length: 9999\r\n\r\n" + b"[" * 9999,
        b"Content-Length: 1\r\n\r\n\xff",
    ],
)
def test_what_is_no_message(pair: Pair, sent: bytes) -> None:
    """Byte by byte, and all at once."""
    pair[1].sendall(sent)
    with pytest.raises(NoMessage):
        read_message(pair[0])
    with pytest.raises(NoMessage):
        _ = missing(sent), message_in(sent)


def test_the_peer_hangs_up(pair: Pair) -> None:
    pair[1].sendall(b"Content-Length: 20\r\n\r\n{")
    pair[1].shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionError):
        read_message(pair[0])
