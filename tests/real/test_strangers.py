"""Whoever is no DAP client of ours gets nothing and harms nobody: S5, S6, S8, F1 to F4, F7.

After each of them the session goes on, and no byte of theirs has reached the rank.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

from dap_mux.protocol.framing import encode_frame
from dap_mux.shell import listeners
from tests.real.driving import Driver, line_of, script
from tests.support.ranks import debugpy_ranks
from tests.support.session import Session, session

pytestmark = pytest.mark.real
PROGRAM: Final = script("until_told")
COUNT: Final = line_of(PROGRAM, "count")
ROUND_TRIP: Final = 1.0  # s: the 0.1 s of S6, and a busy machine around that


def request(command: str, padding: int = 0, **arguments: object) -> bytes:
    """A request in its frame; `padding` makes it longer."""
    body = {"seq": 1, "type": "request", "command": command, "arguments": arguments}
    if padding:
        body["padding"] = "x" * padding
    return encode_frame(json.dumps(body).encode())


HELLO: Final = request("initialize", adapterID="debugpy", clientID="stranger")
EVIL: Final = request("evaluate", expression="__import__('os')._exit(66)")
STRANGERS: Final = {
    "HTTP with DAP in its body": b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n" + HELLO + EVIL,
    "HTTP GET": b"GET /json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a header of a browser": b"Origin: http://evil.example\r\n" + HELLO,
    "a browser's header behind ours": b"Content-Length: 2\r\nHost: localhost\r\n\r\n{}",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a negative length": b"Content-Length: -5\r\n\r\n{}",
    "a length with a unit": b"Content-Length: 12kB\r\n\r\n{}",
    "a hexadecimal length": b"Content-Length: 0x10\r\n\r\n{}",
    "no length": b"Content-Type: application/json\r\n\r\n{}",
    "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "17 MB": b"Content-Length: 17000000\r\n\r\n{",
    "an endless header": b"Content-Type: " + b"x" * 20_000,
    "no JSON": encode_frame(b"{'seq': 1}"),
    "JSON that is no message": encode_frame(b'["seq", 1]'),
    "a request before initialize": EVIL,
    "a first message of 70 kB": request("initialize", 70_000, adapterID="debugpy"),
}
LATER: Final = {
    "HTTP after initialize": b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "17 MB after initialize": b"Content-Length: 17000000\r\n\r\n{",
    "no JSON after initialize": encode_frame(b"{'seq': 2}"),
    "two lengths after initialize": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
}


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    """A session over one stopped rank, which in the end has heard nothing but our own words."""
    async with (
        debugpy_ranks(1, PROGRAM, arguments=["/nowhere/done"]) as ranks,
        session([rank.port for rank in ranks]) as running,
    ):
        driver = await Driver.attach(running, breakpoints={PROGRAM: [COUNT]})
        await driver.stopped(COUNT, 1)
        sent = running.engine.core.ranks["job", 0].seq
        yield driver
        assert running.engine.core.ranks["job", 0].seq == sent
        assert await driver.value(0, "count") == "0"
        assert ranks[0].running


async def answered(running: Session, *chunks: bytes) -> bytes:
    """Say this, and return all that came until the session hung up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    try:
        for chunk in chunks:
            writer.write(chunk)
        return await asyncio.wait_for(reader.read(), 5)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_closed_unread(driver: Driver) -> None:
    for name, said in STRANGERS.items():
        before = time.monotonic()
        assert await answered(driver.session, said) == b"", name
        assert time.monotonic() - before < ROUND_TRIP, name


async def test_closed_after_a_good_start(driver: Driver) -> None:
    for name, said in LATER.items():
        before = time.monotonic()
        heard = await answered(driver.session, HELLO, said)
        assert heard.count(b"Content-Length") <= 1, name  # the answer to initialize, at most
        assert time.monotonic() - before < ROUND_TRIP, name


async def test_before_attach_nothing_is_evaluated(driver: Driver) -> None:
    """A client that has only introduced itself gets an error, and stays."""
    client = await driver.session.client("not attached")
    await client.request("initialize", {"adapterID": "debugpy"})
    for command, arguments in (
        ("evaluate", {"expression": "1"}),
        ("continue", {"threadId": 1}),
        ("list", {}),
    ):
        response = await asyncio.wait_for(client.send(command, arguments), 1)
        assert not response["success"]
        assert "attach" in response["message"]
    assert client.open


async def test_half_a_header_and_silence(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed when the limit is over; who is idle between messages stays (F4, S8)."""
    assert (listeners.FIRST_WITHIN, listeners.STALL) == (10, {"header": 10, "body": 30})
    monkeypatch.setattr(listeners, "FIRST_WITHIN", 0.2)
    monkeypatch.setattr(listeners, "STALL", {"header": 0.2, "body": 0.4})
    idle = await driver.session.client("idle")
    await idle.request("initialize", {"adapterID": "debugpy"})
    for said in ((b"",), (b"Content-Le",), (HELLO[:-3],)):
        assert await answered(driver.session, *said) == b""
    for rest in (b"Content-Le", b"Content-Length: 100\r\n\r\n{"):
        assert b"initialize" in await answered(driver.session, HELLO, rest)
    await idle.request("threads")
    await driver.client.request("threads")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
async def test_another_user_is_refused(driver: Driver) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        STRANGER,
        str(driver.session.port),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    heard, _ = await asyncio.wait_for(child.communicate(HELLO), 10)
    assert heard == b"b''"
    assert child.returncode == 0


STRANGER: Final = """
import encodings.idna, os, socket, sys
said = sys.stdin.buffer.read()
os.setuid(65534)
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as mine:
    try:
        mine.sendall(said)
        heard = mine.recv(100)
    except ConnectionError:
        heard = b""
print(heard, end="")
"""
