"""Requests to a REST server: redirects and who sees the token; silence, and what is no HTTP."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import pytest
from aiohttp import web

from dap_mux.cluster.openpai.rest import MAX_ANSWER, get
from dap_mux.pure.errors import NothingToConnect, Refused
from tests.support.openpai_server import TOKEN, OpenPaiServer, openpai_server
from tests.support.openpai_server import Task as ServedTask


async def asked(server: OpenPaiServer, path: str = "/x") -> str:
    answer = await get(f"{server.url}{path}", TOKEN, within=10)
    return f"{answer.status} {answer.body.decode()}"


def redirect(location: str, status: int = 302) -> web.Response:
    return web.Response(status=status, headers={"Location": location})


async def test_a_redirect_on_the_same_server_is_followed() -> None:
    async with openpai_server() as server:
        server.roles["w"] = [ServedTask(0, {"debug": 1})]

        def once() -> web.Response:
            server.answer = None
            return redirect("/rest-server/api/v2/jobs/me~train", 307)

        server.answer = once
        assert (await asked(server)).startswith('200 {"debugId"')
        paths = [path for path, _ in server.asked]
        assert paths == ["/x", "/rest-server/api/v2/jobs/me~train"]
        assert {said for _, said in server.asked} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_other_server_sees_the_token(status: int) -> None:
    """Another port is another server."""
    async with openpai_server() as server, openpai_server() as other:
        server.answer = partial(redirect, f"{other.url}/steal", status)
        with pytest.raises(Refused, match=f"redirects to {other.url}, which is not followed"):
            await asked(server)
        assert not other.asked


@pytest.mark.parametrize(
    ("location", "complaint"),
    [
        ("//evil.example.com/x", "redirects to http://evil.example.com, which is not followed"),
        ("https://127.0.0.1/x", "redirects to https://127.0.0.1, which"),
        ("file:///etc/passwd", "redirects to file://, which is not followed"),
        ("http://127.0.0.1@evil.example.com/", "redirects to http://evil.example.com, which"),
        ("http://[::1", "Invalid IPv6 URL"),
        ("http://127.0.0.1:99999/", "Port out of range"),
        ("/x", "redirects in a circle"),
    ],
)
async def test_redirects_that_lead_elsewhere(location: str, complaint: str) -> None:
    async with openpai_server() as server:
        server.answer = partial(redirect, location)
        with pytest.raises((Refused, NothingToConnect), match=complaint) as caught:
            await asked(server)
        assert TOKEN not in str(caught.value)


@asynccontextmanager
async def raw_server(said: bytes, *, endless: bool = False) -> AsyncIterator[str]:
    """A server that says this to everybody, once or for ever, and keeps the connection."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)

    async def talk(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                await stream.send(said)
                while endless:
                    await stream.send(b"x" * 65536)
                while True:
                    await stream.receive()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, talk)
        yield f"http://127.0.0.1:{port}"
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def test_an_endless_answer() -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\n\r\n", endless=True) as url:
        with pytest.raises(NothingToConnect, match=f"the answer is longer than {MAX_ANSWER} bytes"):
            await get(f"{url}/x", TOKEN)


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"]
)
async def test_a_silent_server_keeps_neither_us_nor_a_thread(said: bytes) -> None:
    async with raw_server(said) as url:
        with pytest.raises(NothingToConnect, match=f"{url}: no answer"):
            await get(f"{url}/x", TOKEN, within=0.2)
        for thread in threading.enumerate():
            if url.removeprefix("http://") in thread.name:
                await anyio.to_thread.run_sync(thread.join, 10)
                assert not thread.is_alive()


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH-2.0-OpenSSH_9.6"),
        (b"\x16\x03\x01\x02\x00\x01\n", r"\\x16\\x03"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200, "got more than 100 headers"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000 + b"\r\n", "got more than 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "IncompleteRead"),
    ],
)
async def test_a_server_that_speaks_no_http(said: bytes, complaint: str) -> None:
    async with raw_server(said) as url:
        with pytest.raises(NothingToConnect, match=complaint) as caught:
            await get(f"{url}/x", TOKEN, within=10)
        assert str(caught.value).isprintable()


async def test_nobody_listens() -> None:
    with pytest.raises(NothingToConnect, match=r"http://127\.0\.0\.1:9: Connection refused"):
        await get("http://127.0.0.1:9/x", TOKEN)
