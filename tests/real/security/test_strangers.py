"""A peer that is no DAP client of ours learns nothing and does no harm.

After each of them the session goes on, and none of its bytes has reached the rank.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from dap_mux.pure.protocol.messages import Framer, encode_frame
from dap_mux.shell import listeners
from tests.real.driving import COUNT, COUNTING, Driver, driving
from tests.support.processes.ranks import debugpy_ranks
from tests.support.security import bytes_as_nobody
from tests.support.session import Session

pytestmark = [pytest.mark.real, pytest.mark.heavy]
PATIENCE: Final = 30.0  # s; not a wait
FIRST_WITHIN: Final = 3.0  # s; in the limit's place where it passes: enough for a first word


def request(command: str, padding: int = 0, **arguments: object) -> bytes:
    """A request in its frame; `padding` makes it longer."""
    body = {"seq": 1, "type": "request", "command": command, "arguments": arguments}
    if padding:
        body["padding"] = "x" * padding
    return encode_frame(json.dumps(body).encode())


HELLO: Final = request("initialize", adapterID="debugpy", clientID="stranger")
EXIT: Final = "__import__('os')._exit(66)"
EVIL: Final = request("evaluate", expression=EXIT)
STRANGERS: Final = {
    "not DAP: HTTP around DAP": b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n" + HELLO + EVIL,
    "not DAP: HTTP GET": b"GET /json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "not DAP: a header of a browser": b"Origin: http://evil.example\r\n" + HELLO,
    "not DAP: a browser's header behind ours": b"Content-Length: 2\r\nHost: localhost\r\n\r\n{}",
    "not DAP: TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),
    "not DAP: SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "length: negative": b"Content-Length: -5\r\n\r\n{}",
    "length: with a unit": b"Content-Length: 12kB\r\n\r\n{}",
    "length: hexadecimal": b"Content-Length: 0x10\r\n\r\n{}",
    "length: none": b"Content-Type: application/json\r\n\r\n{}",
    "length: two of them": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "size: 17 MB": b"Content-Length: 17000000\r\n\r\n{",
    "header: endless": b"Content-Type: " + b"x" * 20_000,
    "JSON: none": encode_frame(b"{'seq': 1}"),
    "JSON: no message": encode_frame(b'["seq", 1]'),
    "early: a first message of 70 kB": request("initialize", 70_000, adapterID="debugpy"),
    **{
        f"no seq to answer: {seq}": encode_frame(
            f'{{"seq":{seq},"type":"request","command":"initialize"}}'.encode()
        )
        for seq in ("1.5", '"1"', "null")
    },
}
ANSWERED: Final = (
    (EVIL, "the first request must be `initialize`"),
    (
        encode_frame(b'{"seq":1,"command":"initialize","arguments":{}}'),
        "not a DAP message: Object missing required field `type`",
    ),
)
LATER: Final = {
    "not DAP: HTTP after initialize": b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "size: 17 MB after initialize": b"Content-Length: 17000000\r\n\r\n{",
    "JSON: none after initialize": encode_frame(b"{'seq': 2}"),
    "length: two of them after initialize": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
}


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    """A session over one stopped rank, which in the end has heard nothing but our own words."""
    async with (
        debugpy_ranks(1, COUNTING, arguments=["/nowhere/done"]) as ranks,
        driving(ranks, {COUNTING: [COUNT]}, stopped=COUNT) as driver,
    ):
        before = len(driver.session.engine.told)
        yield driver
        for said in map(json.loads, driver.session.engine.told[before:]):
            # The engine asks ranks about their files and meshes when it likes, without a frame.
            assert said["command"] == "evaluate"
            assert not {"frameId", "threadId"} & set(said["arguments"])
            assert said["arguments"]["expression"] != EXIT
        assert await driver.value(0, "count") == "0"
        assert ranks[0].running


async def answered(running: Session, *chunks: bytes) -> bytes:
    """Say this, and return all that came until the session hung up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    try:
        for chunk in chunks:
            writer.write(chunk)
        return await asyncio.wait_for(reader.read(), PATIENCE)
    except ConnectionError:  # reset, or a broken pipe where its farewell came just before
        return b""
    finally:
        writer.close()


async def test_closed_unread(driver: Driver) -> None:
    """At its first wrong byte: the peer goes on waiting, and it is us who hang up."""
    for name, said in STRANGERS.items():
        assert await answered(driver.session, said) == b"", name


async def test_what_has_a_seq_is_answered_and_then_closed(driver: Driver) -> None:
    for said, why in ANSWERED:
        (body,) = Framer().feed(await answered(driver.session, said))
        answer = json.loads(body)
        assert (answer["type"], answer["request_seq"], answer["success"]) == ("response", 1, False)
        assert answer["message"] == why


async def test_closed_after_a_good_start(driver: Driver) -> None:
    for name, said in LATER.items():
        heard = await answered(driver.session, HELLO, said)
        assert heard.count(b"Content-Length") <= 1, f"{name}: the answer to initialize, at most"


async def test_before_attach_nothing_is_evaluated(driver: Driver) -> None:
    """A client that has only introduced itself gets an error, and stays."""
    client = await driver.session.client("not attached")
    await client.request("initialize", {"adapterID": "debugpy"})
    for command, arguments in (
        ("evaluate", {"expression": "1"}),
        ("continue", {"threadId": 1}),
        ("list", {}),
    ):
        response = await asyncio.wait_for(client.send(command, arguments), PATIENCE)
        assert not response["success"]
        assert "attach" in response["message"]
    assert client.open


async def test_half_a_header_and_silence(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed when the limit is over; a client that is idle between messages stays."""
    assert (listeners.FIRST_MESSAGE_TIMEOUT_S, listeners.STALL_TIMEOUTS_S) == (
        10,
        {"header": 10, "body": 30},
    )
    monkeypatch.setattr(listeners, "FIRST_MESSAGE_TIMEOUT_S", FIRST_WITHIN)
    monkeypatch.setattr(listeners, "STALL_TIMEOUTS_S", {"header": 0.2, "body": 0.4})
    idle = await driver.session.client("idle")
    await idle.request("initialize", {"adapterID": "debugpy"})
    said = ((b"",), (b"Content-Le",), (HELLO[:-3],))
    assert await asyncio.gather(*(answered(driver.session, *each) for each in said)) == [b""] * 3
    for rest in (b"Content-Le", b"Content-Length: 100\r\n\r\n{"):
        assert b"initialize" in await answered(driver.session, HELLO, rest)
    await idle.request("threads")
    await driver.client.request("threads")


async def test_another_user_without_the_token(driver: Driver) -> None:
    """Told who we are, and nothing more; the rank hears of none of it."""
    words = EVIL + request("threads") + request("configurationDone") + request("attach")
    heard = await as_nobody(driver.session.port, HELLO + words)
    names = [(answer["command"], answer["success"]) for answer in heard]
    refused = ["evaluate", "threads", "configurationDone", "attach"]
    assert names == [("initialize", True), *((name, False) for name in refused)]
    assert all("token" in answer["message"] for answer in heard[1:])


async def test_another_user_who_says_nothing_more(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`initialize` alone does not keep a stranger's connection open, nor raise its limits."""
    heard = await as_nobody(driver.session.port, HELLO + request("attach", 70_000))
    assert "attach" not in [answer["command"] for answer in heard]
    monkeypatch.setattr(listeners, "FIRST_MESSAGE_TIMEOUT_S", FIRST_WITHIN)
    heard = await as_nobody(driver.session.port, HELLO)
    assert [answer["command"] for answer in heard] == ["initialize"]


async def as_nobody(port: int, said: bytes) -> list[dict[str, Any]]:
    """Say this as another user, until the session hangs up; return what came."""
    return [json.loads(body) for body in Framer().feed(await bytes_as_nobody(port, said))]
