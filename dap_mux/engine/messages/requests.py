"""A client's requests: each finds its route, and none stays without an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Raw, Struct

from dap_mux.engine import admission
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.errors import PeerFault, StaleHandle, UsageError
from dap_mux.pure.protocol.arguments import NoArguments
from dap_mux.pure.protocol.messages import Body, Message, raw
from dap_mux.pure.protocol.validation import check

Handler: TypeAlias = Callable[[ClientRequest], None]
PartsT = TypeVar("PartsT")  # whatever has the parts that answer
MAX_OPEN: Final = 4096  # requests of one client that wait for their answers
ROLES = ("", "controller", "observer")  # "": not attached


class Route(Struct, Generic[PartsT], frozen=True):
    """What happens to one request. No `handler`: it is refused at once and never forwarded."""

    handler: Callable[[PartsT], Handler] | None
    arguments: type[Struct] = NoArguments
    capabilities: tuple[str, ...] = ()
    before_attach: bool = False  # an initialized client may send it before it attaches
    observers: bool = False  # an observer may send it


class Requests(Generic[PartsT]):
    """The engine's part that takes clients' requests, and those that we make for a client.

    Handlers are looked up in `parts` when they are called, so that parts may make requests too.
    """

    def __init__(
        self, core: SessionState, routes: Mapping[str, Route[PartsT]], parts: PartsT
    ) -> None:
        self._core = core
        self._routes = routes
        self._parts = parts
        self._handlers = {role: self._handlers_for(role) for role in ROLES}

    def _handlers_for(self, role: str) -> dict[str, Callable[[PartsT], Handler]]:
        """Return the handlers of all requests that a client in this role may send."""
        return {
            name: route.handler
            for name, route in self._routes.items()
            if route.handler is not None and not _problem(role, name, route)
        }

    def hear(self, client: Client, message: Message) -> None:
        """Take one message of an initialized client, or its `initialize`."""
        if client.leaving or message.type != "request":
            return  # answers to us: we ask clients nothing
        number = self._core.number()
        request = ClientRequest(client, message.seq, message.command, message.arguments, number)
        client.open[number] = request
        if len(client.open) > MAX_OPEN:
            text = f"{MAX_OPEN} requests of this client are unanswered: wait before you send more"
            to_clients.refuse(self._core, request, text)
            return
        self._handle(request)

    def _handle(self, request: ClientRequest) -> None:
        if not request.client.trusted and request.command not in admission.BEFORE:
            to_clients.turn_away(self._core, request, admission.MISSING)
            return
        handler = self._handlers[request.client.role].get(request.command)
        if handler is None:
            to_clients.refuse(self._core, request, self._refusal(request))
            return
        translation = request.client.translation
        self._core.cause = request
        try:
            request.arguments = self._checked(request)
            if translation is not None:
                kind = self._routes[request.command].arguments
                request.arguments = translation.arguments(kind, request.arguments)
            handler(self._parts)(request)
        except (StaleHandle, UsageError, PeerFault) as error:
            to_clients.refuse(self._core, request, str(error))

    def on_behalf(
        self, outer: ClientRequest, command: str, arguments: Body, then: Callable[[Body, str], None]
    ) -> None:
        """Handle a request as if `outer`'s client had sent it; `then` takes the body or the error.

        Raises what makes a request be refused.
        """
        client = outer.client
        request = ClientRequest(client, outer.seq, command, raw(arguments), reply=then)
        handler = self._handlers[client.role].get(command)
        if handler is None:
            raise UsageError(self._refusal(request))
        request.arguments = self._checked(request)
        handler(self._parts)(request)

    def _checked(self, request: ClientRequest) -> Raw:
        """Return a request's arguments if they are what its route says. Raises `BadArguments`."""
        arguments = self._routes[request.command].arguments
        return check(request.command, request.arguments, arguments)

    def _refusal(self, request: ClientRequest) -> str:
        return _problem(request.client.role, request.command, self._routes.get(request.command))


def _problem(role: str, command: str, route: Route[PartsT] | None) -> str:
    """Return why a request cannot be handled at all, '' if it can."""
    if route is None:
        return f"unknown request {command!r}"
    if route.handler is None:
        return f"{command!r} is not supported"
    if not role and not route.before_attach:
        return f"{command!r} needs an attached client: send `attach` first"
    if role == "observer" and not route.observers:
        text = f"{command!r} is for controllers; this client attached as observer"
        return f"{text}: omit `role` from its attach arguments to let it do more than look"
    return ""
