"""Answers and events to clients. Every request is answered exactly once."""

from __future__ import annotations

from msgspec import UNSET, Raw

from dap_mux.engine.outputs import ToClient
from dap_mux.engine.state.client import Client, ClientRequest, Dropped
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.errors import DapMuxError, PeerFault
from dap_mux.pure.protocol.messages import Body, Event, Response, encode, plain, raw
from dap_mux.pure.protocol.types import UNAUTHORIZED

OWN_ERROR = 1
RANK_ERROR = 2
KILO = 1000


class AnsweredTwice(DapMuxError):
    """A defect of ours: one request, two responses."""


def respond(core: SessionState, request: ClientRequest, body: Raw | Body | None = None) -> None:
    """Answer a request with success."""
    client = request.client
    if request.failed:
        return
    if request.reply is not None:
        request.answered = True
        request.reply(plain(raw(body)) if body else {}, "")
        return
    payload = UNSET if body is None else body
    if client.translation is not None and body is not None:
        try:
            payload = client.translation.body(request.command, raw(body))
        except PeerFault as error:
            refuse(core, request, f"malformed response: {error}")
            return
    if not _take(core, request):
        return
    client.seq += 1
    answer = Response(client.seq, request.seq, True, request.command, body=payload)
    core.out.append(ToClient(client.id, encode(answer)))


def refuse(core: SessionState, request: ClientRequest, message: str) -> None:
    """Answer a request with an error that a person can read."""
    _fail(core, request, message, OWN_ERROR)


def pass_failure(core: SessionState, request: ClientRequest, message: str) -> None:
    """Answer with a rank's own failure, word for word; DAP wants a body, debugpy sends none."""
    _fail(core, request, message, RANK_ERROR)


def turn_away(core: SessionState, request: ClientRequest, message: str) -> None:
    """Answer a client that has not shown the token."""
    _fail(core, request, message, UNAUTHORIZED)


def _fail(core: SessionState, request: ClientRequest, message: str, error_id: int) -> None:
    client = request.client
    if request.failed:
        return
    if request.reply is not None:
        request.answered = True
        request.reply({}, message)
        return
    if not _take(core, request):
        return
    client.seq += 1
    body = {"error": {"id": error_id, "format": message}}
    answer = Response(client.seq, request.seq, False, request.command, message, body)
    core.out.append(ToClient(client.id, encode(answer)))


def _take(core: SessionState, request: ClientRequest) -> bool:
    """Mark as answered; False when the client has left meanwhile."""
    if request.answered:
        raise AnsweredTwice(f"{request.command} (seq {request.seq}) of client {request.client.id}")
    request.answered = True
    request.client.open.pop(request.number, None)
    return request.client.id in core.clients


def send_event(
    core: SessionState,
    client: Client,
    name: str,
    body: Raw | Body | None = None,
) -> None:
    """Send one event to one client, unless it has left meanwhile; `terminated` is the last one."""
    if client.id not in core.clients or client.terminated:
        return
    client.terminated = name == "terminated"
    payload = UNSET if body is None else raw(body)
    if client.translation is not None and payload is not UNSET:
        try:
            payload = client.translation.event(name, payload)
        except PeerFault as error:
            core.warn("client", f"dropped a malformed {name!r} event: {error}")
            return
    client.seq += 1
    core.out.append(ToClient(client.id, encode(Event(client.seq, name, payload))))


def broadcast(core: SessionState, name: str, body: Body | None = None) -> None:
    """Send one event to every configured controller; the body is encoded once."""
    payload = None if body is None else raw(body)
    for client in core.controllers():
        send_event(core, client, name, payload)


def broadcast_output(core: SessionState, body: Body) -> None:
    """Send what ranks printed to every configured controller that reads."""
    payload = raw(body)
    for client in core.controllers():
        if client.dropped is None:
            send_event(core, client, "output", payload)
        else:
            _drop(client.dropped, str(body["output"]))


def _drop(dropped: Dropped, text: str) -> None:
    dropped.lines += text.count("\n") + (not text.endswith("\n"))
    dropped.size += len(text.encode("utf-8", "replace"))


def reads_again(core: SessionState, client: Client) -> None:
    """The client reads what it is sent: say what it has lost meanwhile, if anything."""
    dropped, client.dropped = client.dropped, None
    if dropped and dropped.lines:
        one = dropped.lines == 1
        text = (
            f"dap-mux: {dropped.lines:,} {'line' if one else 'lines'} of output "
            f"({readable_size(dropped.size)}) {'was' if one else 'were'} dropped, "
            "because this client did not read them\n"
        )
        send_event(core, client, "output", {"category": "console", "output": text})


def readable_size(size: float) -> str:
    """Write a number of bytes as people do: 512 B, 1.2 MB."""
    if size < KILO:
        return f"{size:.0f} B"
    for unit in ("kB", "MB"):
        size /= KILO
        if size < KILO:
            return f"{size:.1f} {unit}"
    return f"{size / KILO:.1f} GB"
