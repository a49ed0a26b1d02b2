"""Answers, events and messages to clients. Every request is answered exactly once."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Raw, Struct

from dap_mux.engine.outputs import ToClient
from dap_mux.engine.state.client import Client, ClientRequest, Dropped
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.errors import DapMuxError, PeerFault
from dap_mux.pure.protocol.messages import Body, Event, Response, encode, plain, raw
from dap_mux.pure.rank_sets import fold

OWN_ERROR = 1
RANK_ERROR = 2
KILO = 1000
RED: Final = "\x1b[31m"
PLAIN: Final = "\x1b[0m"


class AnsweredTwice(DapMuxError):
    """A defect of ours: one request, two responses."""


def respond(core: SessionState, request: ClientRequest, body: Raw | Body | None = None) -> None:
    """Answer a request with success."""
    translation = request.client.translation
    if translation is not None and body is not None and request.reply is None:
        try:
            body = translation.body(request.command, raw(body))
        except PeerFault as error:
            refuse(core, request, f"malformed response: {error}")
            return
    _answer(core, request, body)


def refuse(
    core: SessionState, request: ClientRequest, message: str, error_id: int = OWN_ERROR
) -> None:
    """Answer a request with an error that a person can read.

    `RANK_ERROR`: a rank's own, word for word; DAP wants a body, debugpy sends none.
    `UNAUTHORIZED`: the client has not shown the token.
    """
    _answer(core, request, {"error": {"id": error_id, "format": message}}, message)


def _answer(
    core: SessionState, request: ClientRequest, body: Raw | Body | None, error: str | None = None
) -> None:
    client, ok = request.client, error is None
    if request.failed:
        return
    if request.reply is not None:
        request.answered = True
        request.reply(plain(raw(body)) if body and ok else {}, error or "")
    elif _take(core, request):
        client.seq += 1
        message = UNSET if error is None else error
        payload = UNSET if body is None else body
        answer = Response(client.seq, request.seq, ok, request.command, message, payload)
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


def say(core: SessionState, text: str, category: str = "console") -> None:
    """Print a line of ours at every configured controller."""
    broadcast(core, "output", _line(text, category))


def say_to(core: SessionState, client: Client, text: str, category: str = "console") -> None:
    """Print a line of ours at one client."""
    send_event(core, client, "output", _line(text, category))


def _line(text: str, category: str) -> Body:
    return {"category": category, "output": f"dap-mux: {text}\n"}


def send_to_listeners(core: SessionState, name: str, body: Body) -> None:
    """Send one of our own events to the clients that asked for it by their `events`."""
    for client in list(core.clients.values()):
        if name in client.events:
            send_event(core, client, name, body)


def broadcast_output(core: SessionState, body: Body) -> None:
    """Send what ranks printed to every configured controller, and observer, that reads.

    A line of an outlier is coloured for a client that shows colours.
    """
    payload = styled = raw(body)
    if body.get("outlier") is True:
        line = str(body["output"]).removesuffix("\n")
        styled = raw({**body, "output": f"{RED}{line}{PLAIN}\n"})
    for client in [one for one in core.clients.values() if one.hears_output]:
        if client.dropped is None:
            shown = styled if client.about.supportsANSIStyling else payload
            send_event(core, client, "output", shown)
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
            f"{dropped.lines:,} {'line' if one else 'lines'} of output "
            f"({readable_size(dropped.size)}) {'was' if one else 'were'} dropped, "
            "because this client did not read them"
        )
        say_to(core, client, text)


def readable_size(size: float) -> str:
    """Write a number of bytes as people do: 512 B, 1.2 MB."""
    if size < KILO:
        return f"{size:.0f} B"
    for unit in ("kB", "MB"):
        size /= KILO
        if size < KILO:
            return f"{size:.1f} {unit}"
    return f"{size / KILO:.1f} GB"


# Messages from the session to the users of its clients.


def notice(core: SessionState, text: str, *, lasting: bool = False) -> None:
    """Tell every controller, configured or not: why ranks fail may be known that early.

    `lasting`: those that attach later are told as well.
    """
    if lasting:
        core.lasting.append(text)
    for client in core.attached():
        notice_to(core, client, text)


def notice_to(core: SessionState, client: Client, text: str) -> None:
    """Tell one client more than DAP has events for."""
    say_to(core, client, text, "stderr")


# Tells clients how far attaching many ranks has come, and who is still missing.

QUIET_PERIOD_S: Final = 0.5  # attaching that is done by then needs no toast
UPDATE_INTERVAL_S: Final = 0.25  # between two updates
ABSENT_AFTER_S: Final = 2.0  # then the user is told which ranks are not there
DONE: Final = frozenset({Phase.LIVE, Phase.GONE, Phase.RELEASED, Phase.WAITING, Phase.IDLE})


class Progress(Struct, eq=False):
    """The engine's part that owns progress events (DAP: progressStart, -Update, -End)."""

    _core: SessionState
    _clients: list[Client] = []
    _id: str = ""
    _timer: int | None = None

    def watch(self) -> None:
        """Ranks are being attached: say so if it takes a while."""
        if self._timer is None and not self._core.single:
            self._timer = self._core.after(QUIET_PERIOD_S, self._tick)
            self._core.after(ABSENT_AFTER_S, self._name_absent)

    def _tick(self) -> None:
        self._timer = None
        if not self._under_way() or not self._core.flow.configured:
            self.end()
            return
        if not self._id:
            self._start()
        self._say("progressUpdate", {"message": self._message(), "percentage": self._percent()})
        self._timer = self._core.after(UPDATE_INTERVAL_S, self._tick)

    def _start(self) -> None:
        self._id = f"dap-mux-attach-{self._core.number()}"
        willing = (c for c in self._core.controllers() if c.about.supportsProgressReporting)
        self._clients = list(willing)
        title = f"Attaching to {len(self._core.mains)} ranks"
        self._say("progressStart", {"title": title, "cancellable": False})

    def end(self) -> None:
        """Attaching is done, or the session is over."""
        if self._id:
            self._say("progressEnd", {"message": self._message()})
        self._id, self._clients = "", []

    def _say(self, event: str, body: Body) -> None:
        for client in self._clients:
            send_event(self._core, client, event, {"progressId": self._id, **body})

    def _under_way(self) -> bool:
        return any(rank.phase not in DONE for rank in self._core.mains.values())

    def _attached(self) -> list[Rank]:
        return [rank for rank in self._core.sorted_mains() if rank.phase.live]

    def _percent(self) -> float:
        return round(100 * len(self._attached()) / max(1, len(self._core.mains)), 1)

    def _message(self) -> str:
        return f"{len(self._attached())} of {len(self._core.mains)} attached"

    def _name_absent(self) -> None:
        absent = [rank for rank in self._core.sorted_mains() if rank.phase is Phase.WAITING]
        if not absent or not self._core.flow.configured:
            return
        who = fold((rank.rank_id for rank in absent), self._core.settings.default_group)
        say(self._core, f"waiting for rank {who}: {absent[0].reason}")
