"""`DapClient`: one connection to a debug adapter, seen from the client's side.

Sending never waits, so requests can be pipelined; every event is kept, so none is lost between
two waits. All of it belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from dap_mux.pure.errors import DapMuxError, PeerFault
from dap_mux.pure.protocol.messages import Framer, encode_frame

Json = dict[str, Any]
Tap = Callable[[str, Json], None]
"""Sees every message: called with "sent" or "received" and the message."""

Arguments = Mapping[str, Any]
T = TypeVar("T")
DEFAULT_FILTERS: Final[tuple[str, ...]] = ("default",)
_DEFAULT_TIMEOUT_S: Final = 30.0  # shorter than a test's limit, so that the error names the event
_CHUNK: Final = 64 * 1024


class ConnectionLost(DapMuxError):
    """The server closed the connection before it had answered everything."""


class RequestFailed(DapMuxError):
    """The server answered `command` with an error, whose `message` and `body` these are."""

    def __init__(self, command: str, message: str, body: dict[str, Any]) -> None:
        super().__init__(f"{command}: {message}")
        self.command = command
        self.message = message
        self.body = body


class DapClient:
    """Requests, responses, events, over streams (`connect` opens them) until the server hangs up.

    `events` holds every event so far; the callbacks in `on_event` get each new one; `failure` is
    the reason why the connection ended, None while it is open.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tap: Tap | None = None
    ) -> None:
        self.events: list[Json] = []
        self.on_event: list[Callable[[Json], None]] = []
        self.failure: BaseException | None = None
        self._failure_told = False
        self._pending: dict[int, asyncio.Future[Json]] = {}
        self._takers: dict[int, Callable[[Json], None]] = {}
        self._watchers: set[asyncio.Future[None]] = set()
        self._seen: dict[str, int] = {}  # event name: index in `events` after the last one taken
        self._reader, self._writer, self._tap = reader, writer, tap
        self._framer = Framer()
        self._seq = 0
        self._reading = asyncio.get_running_loop().create_task(self._read())
        self._reading.add_done_callback(self._ended)

    @classmethod
    async def connect(
        cls, host: str, port: int, *, tls: ssl.SSLContext | None = None, tap: Tap | None = None
    ) -> DapClient:
        """Connect over TCP, inside `tls` if given; raise `OSError` if nothing listens there."""
        reader, writer = await asyncio.open_connection(host, port, ssl=tls)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(reader, writer, tap)

    @classmethod
    async def connect_unix(cls, path: str, *, tap: Tap | None = None) -> DapClient:
        """Connect to a unix socket; raise `OSError` if nothing listens there."""
        return cls(*await asyncio.open_unix_connection(path), tap)

    @property
    def open(self) -> bool:
        """True until the server has closed the connection, or we have."""
        return self.failure is None

    # Requests

    def send(
        self,
        command: str,
        arguments: Arguments | None = None,
        *,
        take: Callable[[Json], None] | None = None,
    ) -> asyncio.Future[Json]:
        """Send a request now; the future gets its whole response, or `ConnectionLost`.

        `take` gets the body of a successful response before any event that follows it is handled;
        a task that awaits the response may only run after such an event.
        """
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        message: Json = {"type": "request", "command": command}
        if arguments is not None:
            message["arguments"] = dict(arguments)
        if self.failure is not None:
            _fail(future, self.failure)
        else:
            seq = self._write(message)
            self._pending[seq] = future
            if take is not None:
                self._takers[seq] = take
        return future

    async def request(
        self,
        command: str,
        arguments: Arguments | None = None,
        *,
        timeout: float | None = None,
        take: Callable[[Json], None] | None = None,
    ) -> Json:
        """Send a request and return the body of its response ({} for none); `take` as in `send`.

        Raises `RequestFailed`, `ConnectionLost` or, after `timeout` seconds, `TimeoutError`.
        """
        sent = self.send(command, arguments, take=take)
        return _body(await _response_within(timeout, sent, command))

    # Events

    async def wait_event(
        self,
        name: str,
        predicate: Callable[[Json], bool] | None = None,
        *,
        timeout: float | None = _DEFAULT_TIMEOUT_S,
    ) -> Json:
        """Return the body of the next event `name` (whose body satisfies `predicate`).

        "Next" is after the last one returned for that name, however long ago it arrived.
        """
        found: list[Json] = []

        def look() -> bool:
            found.extend(self._take(name, predicate))
            return bool(found)

        await self.wait_for(look, timeout=timeout, what=f"event {name}")
        return found[0]

    async def wait_for(
        self,
        predicate: Callable[[], bool],
        *,
        timeout: float | None = _DEFAULT_TIMEOUT_S,
        what: str = "a condition",
    ) -> None:
        """Return once `predicate` holds; it is asked again after each received message."""
        await _within(timeout, self._until(predicate), what)

    async def _until(self, predicate: Callable[[], bool]) -> None:
        while not predicate():
            if self.failure is not None:
                self._failure_told = True
                raise self.failure
            watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watchers.add(watcher)
            try:
                await watcher
            finally:
                self._watchers.discard(watcher)

    def _take(self, name: str, predicate: Callable[[Json], bool] | None) -> Iterable[Json]:
        start = self._seen.get(name, 0)
        for index, event in enumerate(self.events[start:], start):
            body: Json = event.get("body", {})
            if event["event"] == name and (predicate is None or predicate(body)):
                self._seen[name] = index + 1
                return [body]
        return []

    # Session

    async def handshake(
        self,
        attach_args: Arguments,
        *,
        breakpoints: Mapping[str, Iterable[int | Arguments]] | None = None,
        exception_filters: Iterable[str] | None = None,
        client_id: str = "dap-mux",
        launch: bool = False,
        timeout: float | None = _DEFAULT_TIMEOUT_S,
    ) -> Json:
        """Initialize, attach (or launch) and configure; return the capabilities.

        `breakpoints` maps a path to lines or SourceBreakpoints; `exception_filters` may be
        `DEFAULT_FILTERS`, those that are marked so. The response to `attach` comes
        only after `configurationDone` (DAP, "Launch Sequencing"), so nothing waits for it before.
        """
        capabilities = await self.request("initialize", _introduction(client_id), timeout=timeout)
        attached = self.send("launch" if launch else "attach", attach_args)
        await self.wait_for(
            lambda: _refused(attached) or bool(self._take("initialized", None)),
            timeout=timeout,
            what="event initialized",
        )
        if _refused(attached):
            _body(attached.result())  # raises with the server's message
        if exception_filters is DEFAULT_FILTERS:
            exception_filters = default_filters(capabilities)
        await self._configure(breakpoints or {}, exception_filters, timeout)
        _body(await _response_within(timeout, attached, "attach"))
        return capabilities

    async def _configure(
        self,
        breakpoints: Mapping[str, Iterable[int | Arguments]],
        exception_filters: Iterable[str] | None,
        timeout: float | None,
    ) -> None:
        for path, wanted in breakpoints.items():
            lines = [{"line": one} if isinstance(one, int) else dict(one) for one in wanted]
            arguments = {"source": {"path": path}, "breakpoints": lines}
            await self.request("setBreakpoints", arguments, timeout=timeout)
        if exception_filters is not None:
            filters = {"filters": list(exception_filters)}
            await self.request("setExceptionBreakpoints", filters, timeout=timeout)
        await self.request("configurationDone", timeout=timeout)

    async def disconnect(
        self, *, timeout: float | None = _DEFAULT_TIMEOUT_S, **arguments: bool
    ) -> None:
        """Send `disconnect`, wait for its response and for the server to hang up, and close.

        In this order even debugpy can be attached again (an early FIN wedges its adapter).
        """
        await self.request("disconnect", arguments, timeout=timeout)
        await self.wait_for(
            lambda: not self.open, timeout=timeout, what="the end of the connection"
        )
        await self.close()

    async def close(self) -> None:
        """Close the connection; requests without a response fail with `ConnectionLost`."""
        self._reading.cancel()
        await asyncio.wait([self._reading])
        self._writer.close()
        with suppress(OSError):  # the server was faster: closed is what was asked for
            await self._writer.wait_closed()
        if isinstance(self.failure, AssertionError) and not self._failure_told:
            self._failure_told = True
            raise self.failure  # a tap's assertion must not be lost because no request waited

    # Messages

    def _write(self, message: Json) -> int:
        """Send `message` behind the next `seq`, and return that; never waits."""
        self._seq += 1
        message = {"seq": self._seq, **message}
        if self._tap is not None:
            self._tap("sent", message)
        self._writer.write(encode_frame(msgspec.json.encode(message)))
        return self._seq

    async def _read(self) -> None:
        while data := await self._reader.read(_CHUNK):
            for body in self._framer.feed(data):
                self._take_message(body)
        raise ConnectionLost("the server closed the connection")

    def _take_message(self, body: bytes) -> None:
        try:
            self._receive(msgspec.json.decode(body, type=Json))
        except (msgspec.MsgspecError, AttributeError, KeyError, TypeError) as error:
            shape = f"{type(error).__name__}: {error}"
            raise PeerFault(f"a message of unexpected shape ({shape})") from error

    def _receive(self, message: Json) -> None:
        if self._tap is not None:
            self._tap("received", message)
        kind = message["type"]
        if kind == "response":
            self._answer(message)
        elif kind == "event":
            self.events.append(message)
            for callback in self.on_event:
                callback(message)
        else:
            self._refuse(message)
        self._wake()

    def _answer(self, response: Json) -> None:
        take = self._takers.pop(response["request_seq"], None)
        if take is not None and response["success"]:
            take(response.get("body") or {})
        future = self._pending.pop(response["request_seq"], None)
        if future is not None and not future.done():
            future.set_result(response)

    def _refuse(self, request: Json) -> None:
        """Refuse a reverse request at once: a server may do nothing else until then."""
        text = f"{request['command']} is not supported by this client"
        answer = {"type": "response", "request_seq": request["seq"], "command": request["command"]}
        error = {"error": {"id": 1, "format": text}}
        self._write({**answer, "success": False, "message": text, "body": error})

    def _ended(self, reading: asyncio.Task[None]) -> None:
        failure = None if reading.cancelled() else reading.exception()
        if isinstance(failure, OSError):
            failure = ConnectionLost(f"the connection broke: {failure.strerror or failure}")
        failure = failure or ConnectionLost("this client was closed")
        self.failure = failure
        self._failure_told = bool(self._pending)
        for future in self._pending.values():
            _fail(future, failure)
        self._pending.clear()
        self._wake()

    def _wake(self) -> None:
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)


def _fail(future: asyncio.Future[Json], failure: BaseException) -> None:
    if not future.done():
        future.set_exception(failure)
        future.exception()  # retrieved: the loop should not log it for an abandoned request


def default_filters(capabilities: Json) -> list[str]:
    """Return the exception filters that are on unless the user chooses otherwise."""
    filters = capabilities.get("exceptionBreakpointFilters") or []
    return [one["filter"] for one in filters if one.get("default")]


def _refused(future: asyncio.Future[Json]) -> bool:
    return future.done() and (future.exception() is not None or not future.result()["success"])


def _body(response: Json) -> Json:
    body = response.get("body") or {}
    if not response["success"]:
        raise RequestFailed(response["command"], response.get("message", "no reason given"), body)
    return dict(body)


def _introduction(client_id: str) -> Json:
    """Return the `initialize` arguments of a client that counts from 1 and uses plain paths."""
    return {
        "clientID": client_id,
        "clientName": client_id,
        "adapterID": "dap-mux",
        "pathFormat": "path",
        "linesStartAt1": True,
        "columnsStartAt1": True,
        "supportsVariableType": True,
        "supportsProgressReporting": True,
        "supportsInvalidatedEvent": True,
    }


async def _response_within(
    timeout: float | None, response: asyncio.Future[Json], command: str
) -> Json:
    """Wait with a timeout, without the task and the turns of the loop that `_within` takes."""
    if timeout is None:
        return await response
    text = f"no the response to {command} within {timeout} s"
    late = asyncio.get_running_loop().call_later(timeout, _fail, response, TimeoutError(text))
    try:
        return await response
    finally:
        late.cancel()


async def _within(timeout: float | None, awaitable: Awaitable[T], what: str) -> T:
    """Wait with a timeout.

    `asyncio.wait_for` of old Pythons loses a cancellation that arrives with the result.
    """
    future = asyncio.ensure_future(awaitable)
    try:
        done, _ = await asyncio.wait({future}, timeout=timeout)
    except asyncio.CancelledError:
        if not future.cancel() and not future.cancelled():
            future.exception()  # retrieved: no other code will
        raise
    if not done:
        future.cancel()
        raise TimeoutError(f"no {what} within {timeout} s")
    return future.result()
