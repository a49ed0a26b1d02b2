"""`DapClient` against a scripted server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dap_mux.client import ConnectionLost, DapClient, RequestFailed, Tap
from dap_mux.client.client import _within
from dap_mux.pure.protocol.messages import FramingError
from tests.support.clients.conversation import Conversation
from tests.support.clients.scripted_server import ScriptedServer
from tests.support.processes.waiting import until

Json = dict[str, Any]


@asynccontextmanager
async def client_of(server: ScriptedServer, tap: Tap) -> AsyncIterator[DapClient]:
    """A client of this server; at the end the server has seen it go."""
    async with server.listening() as port:
        made = await DapClient.connect("127.0.0.1", port, tap=tap)
        try:
            yield made
        finally:
            await made.close()
            await server.gone.wait()


@pytest.fixture
async def server() -> ScriptedServer:
    return ScriptedServer()


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[DapClient]:
    async with client_of(server, Conversation(strict=False).tap) as made:
        yield made


async def test_a_request_returns_the_body_of_its_response(
    server: ScriptedServer, client: DapClient
) -> None:
    server.on_request = lambda request: server.answer(request, body={"threads": []})
    assert await client.request("threads") == {"threads": []}
    assert server.received == [{"seq": 1, "type": "request", "command": "threads"}]


async def test_responses_may_come_in_any_order(server: ScriptedServer, client: DapClient) -> None:
    def both(request: Json) -> None:
        if request["seq"] == 2:
            server.answer(server.received[1])
            server.answer(server.received[0])

    server.on_request = both
    sent = [client.send("pause", {"threadId": thread}) for thread in (1, 2)]
    assert [response["request_seq"] for response in await asyncio.gather(*sent)] == [1, 2]


async def test_an_error_response_raises_with_its_words(
    server: ScriptedServer, client: DapClient
) -> None:
    body = {"error": {"id": 7, "format": "rank 3 is running"}}
    server.on_request = lambda request: server.answer(
        request, success=False, message="running", body=body
    )
    with pytest.raises(RequestFailed, match="stackTrace: running") as caught:
        await client.request("stackTrace", {"threadId": 3})
    assert caught.value.body == body


async def test_no_response_in_time_says_to_what(client: DapClient) -> None:
    with pytest.raises(TimeoutError, match="no the response to threads"):
        await client.request("threads", timeout=0.01)


async def test_no_event_is_lost_between_waits(server: ScriptedServer, client: DapClient) -> None:
    def three(request: Json) -> None:
        for thread in (1, 2, 3):
            server.event("thread", reason="started", threadId=thread)
        server.event("initialized")
        server.answer(request, body={"threads": []})

    server.on_request = three
    await client.request("threads")
    await client.wait_event("initialized")
    assert (await client.wait_event("thread"))["threadId"] == 1
    assert (await client.wait_event("thread", lambda body: body["threadId"] > 2))["threadId"] == 3
    with pytest.raises(TimeoutError, match="event thread"):
        await client.wait_event("thread", timeout=0.01)
    assert [event["event"] for event in client.events] == ["thread"] * 3 + ["initialized"]


async def test_a_reverse_request_is_refused_at_once(
    server: ScriptedServer, client: DapClient
) -> None:
    refused = asyncio.get_running_loop().create_future()

    def ask_back(message: Json) -> None:
        if message["type"] == "response":
            refused.set_result(message)
        else:
            arguments = {"cwd": "/", "args": ["true"]}
            server.say(type="request", command="runInTerminal", arguments=arguments)
            server.answer(message, body={"threads": []})

    server.on_request = ask_back
    await client.request("threads")
    assert not (await refused)["success"]


async def test_the_handshake_does_not_wait_for_attach_first(
    server: ScriptedServer, client: DapClient
) -> None:
    def play(request: Json) -> None:
        if request["command"] == "attach":
            server.event("initialized")
            return
        bodies = {"initialize": {"supportsLogPoints": True}, "setBreakpoints": {"breakpoints": []}}
        server.answer(request, body=bodies.get(request["command"], {}))
        if request["command"] == "configurationDone":
            server.answer(server.received[1])

    server.on_request = play
    capabilities = await client.handshake(
        {"justMyCode": False},
        breakpoints={"/a.py": [3, {"line": 5, "condition": "x"}]},
        exception_filters=["uncaught"],
        client_id="test",
    )
    assert capabilities == {"supportsLogPoints": True}
    assert [message["command"] for message in server.received] == [
        "initialize",
        "attach",
        "setBreakpoints",
        "setExceptionBreakpoints",
        "configurationDone",
    ]
    lines = server.received[2]["arguments"]["breakpoints"]
    assert lines == [{"line": 3}, {"line": 5, "condition": "x"}]


async def test_a_refused_attach_ends_the_handshake(
    server: ScriptedServer, client: DapClient
) -> None:
    def refuse(request: Json) -> None:
        refused = request["command"] == "attach"
        server.answer(request, success=not refused, message="already being debugged", body={})

    server.on_request = refuse
    with pytest.raises(RequestFailed, match="already being debugged"):
        await client.handshake({})


async def test_a_server_that_hangs_up_fails_what_is_owed(
    server: ScriptedServer, client: DapClient
) -> None:
    server.on_request = lambda request: server.hang_up()
    with pytest.raises(ConnectionLost):
        await client.request("threads")
    assert not client.open
    with pytest.raises(ConnectionLost):
        await client.wait_event("stopped")
    with pytest.raises(ConnectionLost):
        await client.request("threads")


async def test_noise_from_the_server_fails_what_is_owed(
    server: ScriptedServer, client: DapClient
) -> None:
    server.on_request = lambda request: server.raw(b"HTTP/1.1 200 OK\r\n\r\n")
    with pytest.raises(FramingError):
        await client.request("threads")


async def test_a_tap_that_objects_is_heard_by_whoever_waits(server: ScriptedServer) -> None:
    server.on_request = lambda request: server.event("initialized")  # before its response
    async with client_of(server, Conversation().tap) as client:
        with pytest.raises(AssertionError, match="before initialize"):
            await client.request("initialize", {"adapterID": "debugpy"})


async def test_a_tap_that_objects_is_heard_at_the_end_if_nobody_waits(
    server: ScriptedServer,
) -> None:
    def answer_and_end_twice(request: Json) -> None:
        server.answer(request, body={"threads": []})
        server.event("terminated")
        server.event("terminated")

    server.on_request = answer_and_end_twice
    async with client_of(server, Conversation(strict=False).tap) as client:
        await client.request("threads")
        await until(lambda: not client.open, within=30, what="the client's end")
        with pytest.raises(AssertionError, match="a second terminated"):
            await client.close()


async def test_a_cancellation_that_meets_the_answer_is_not_lost() -> None:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(_within(5, answer, "an answer"))
    await asyncio.sleep(0)
    answer.set_result(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
