"""What a client says, found its row in the routing table; nothing stays without an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Raw

from dap_mux.engine import admission
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.routes import ROUTES
from dap_mux.engine.state.model import Body, Client, ClientRequest
from dap_mux.engine.state.session import Core
from dap_mux.errors import PeerFault, StaleHandle, UsageError
from dap_mux.protocol.messages import Message, raw
from dap_mux.protocol.validation import check

Handler = Callable[[ClientRequest], None]
MAX_OPEN: Final = 4096  # requests of one client that wait for their answers
ROLES = ("", "controller", "observer")  # "": not attached


class Requests:
    """The engine's part that hears the clients. `handlers` are the table's, by command."""

    def __init__(self, core: Core, handlers: Mapping[str, Handler]) -> None:
        self._core = core
        self._open_to = {role: _open_to(role, handlers) for role in ROLES}

    def hear(self, client: Client, message: Message) -> None:
        """Take one message of an initialized client, or its `initialize`."""
        if client.leaving or message.type != "request":
            return  # answers to us: we ask clients nothing
        number = self._core.number()
        request = ClientRequest(client, message.seq, message.command, message.arguments, number)
        client.open[number] = request
        if len(client.open) > MAX_OPEN:
            text = f"{MAX_OPEN} requests of this client wait for their answers: send no more"
            to_clients.refuse(self._core, request, text)
            return
        self._handle(request)

    def _handle(self, request: ClientRequest) -> None:
        if not request.client.trusted and request.command not in admission.BEFORE:
            to_clients.turn_away(self._core, request, admission.MISSING)
            return
        handler = self._open_to[request.client.role].get(request.command)
        if handler is None:
            to_clients.refuse(self._core, request, _problem(request.client.role, request.command))
            return
        edge = request.client.edge
        self._core.cause = request
        try:
            request.arguments = _checked(request)
            if edge is not None:
                request.arguments = edge.arguments(request.command, request.arguments)
            handler(request)
        except (StaleHandle, UsageError, PeerFault) as error:
            to_clients.refuse(self._core, request, str(error))

    def on_behalf(
        self, outer: ClientRequest, command: str, arguments: Body, then: Callable[[Body, str], None]
    ) -> None:
        """Handle a request as if `outer`'s client had sent it; `then` takes the body or the error.

        Raises what makes a request be refused.
        """
        client = outer.client
        handler = self._open_to[client.role].get(command)
        if handler is None:
            raise UsageError(_problem(client.role, command))
        request = ClientRequest(client, outer.seq, command, raw(arguments), reply=then)
        request.arguments = _checked(request)
        handler(request)


def _checked(request: ClientRequest) -> Raw:
    """Return a request's arguments if they are what the table says. Raises `BadArguments`."""
    return check(request.command, request.arguments, ROUTES[request.command].arguments)


def _open_to(role: str, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Return the handlers of all requests that a client in this role may send."""
    return {name: handler for name, handler in handlers.items() if not _problem(role, name)}


def _problem(role: str, command: str) -> str:
    """Return why a request cannot be handled at all, '' if it can."""
    route = ROUTES.get(command)
    if route is None:
        return f"unknown request {command!r}"
    if route.handler is None:
        return f"{command!r} is not supported"
    if not role and not route.before_attach:
        return f"{command!r} needs an attached client: send `attach` first"
    if role == "observer" and not route.observers:
        text = f"{command!r} is for controllers; this client attached as observer"
        return f"{text}: leave `role` out of its attach arguments to let it do more than look"
    return ""
