"""Clients' connections and messages, up to the request that a message is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from dap_mux.engine import inputs
from dap_mux.engine.clients.leave import ClientLeave
from dap_mux.engine.clients.translation_setup import TranslationSetup
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.capabilities import Capabilities
from dap_mux.engine.outputs import CloseClient
from dap_mux.engine.state.client import Client, ClientRequest, Dropped
from dap_mux.engine.state.client_dialects import dialect_of
from dap_mux.engine.state.session import SessionState
from dap_mux.protocol.arguments import InitializeArguments
from dap_mux.protocol.messages import NO_RAW, Message
from dap_mux.protocol.validation import typed

# How a client introduces itself.


class ClientInitialize:
    """The engine's part that answers `initialize`."""

    def __init__(self, core: SessionState, capabilities: Capabilities) -> None:
        self._core = core
        self._capabilities = capabilities
        self._translation = TranslationSetup(core)

    def initialize(self, request: ClientRequest) -> None:
        """`initialize`: answered here; what the ranks offer is known later, or already."""
        client = request.client
        if client.initialized:
            to_clients.refuse(self._core, request, "already initialized")
            return
        client.about = typed(request.arguments, InitializeArguments)
        client.dialect = dialect_of(client.about.clientID)
        client.initialized = True
        self._translation.introduce(client)
        to_clients.respond(self._core, request, self._capabilities.now())


NOT_INTRODUCED: Final = "the first request must be `initialize`"


class ClientInputs(Struct, eq=False):
    """The engine's part that takes the inputs of clients. `hear` takes their messages on."""

    _core: SessionState
    _hear: Callable[[Client, Message], None]
    _leave: ClientLeave

    def said(self, event: inputs.ClientSaid) -> None:
        """A client has sent a message; before `initialize` there is nothing else to say."""
        client = self._core.clients.get(event.client)
        message = event.message
        if client is None:
            return
        if client.initialized or message.command == "initialize":
            self._hear(client, message)
        elif not client.leaving:
            seq = message.seq if message.type == "request" else None
            self._send_away(client, seq, message.command, NOT_INTRODUCED)

    def take(self, event: inputs.OfClient) -> None:
        """A client's connection has changed."""
        if isinstance(event, inputs.ClientConnected):
            client = Client(event.client, trusted=event.trusted, token=event.token)
            self._core.clients[client.id] = client
            return
        known = self._core.clients.get(event.client)
        if known is None:
            return
        match event:
            case inputs.ClientBabbled():
                if not known.leaving:
                    self._send_away(known, event.seq, event.command, event.problem)
            case inputs.ClientGone():
                self._leave.gone(known)
            case inputs.ClientStalled():
                known.dropped = Dropped()
            case inputs.ClientReads():
                to_clients.reads_again(self._core, known)
            case _:
                inputs.assert_never(event)

    def _send_away(self, client: Client, seq: int | None, command: str, problem: str) -> None:
        """Say what was wrong, where there is a request to answer, and hang up."""
        if seq is not None:
            to_clients.refuse(self._core, ClientRequest(client, seq, command, NO_RAW), problem)
        self._leave.gone(client)
        self._core.out.append(CloseClient(client.id))
