"""How a client introduces itself."""

from __future__ import annotations

from dap_mux.engine.clients.translation_setup import TranslationSetup
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.capabilities import Capabilities
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.client_dialects import dialect_of
from dap_mux.engine.state.session import SessionState
from dap_mux.protocol.types import InitializeArguments, typed


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
