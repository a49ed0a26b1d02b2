"""Messages from the session to the users of its clients."""

from __future__ import annotations

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import Client
from dap_mux.engine.state.session import SessionState


class Notices:
    """The engine's part that tells controllers more than DAP has events for."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._lasting: list[str] = []

    def notice(self, text: str, *, lasting: bool = False) -> None:
        """Tell every controller, configured or not: why ranks fail may be known that early.

        `lasting`: those that attach later are told as well.
        """
        if lasting:
            self._lasting.append(text)
        for client in list(self._core.clients.values()):
            if client.role == "controller":
                self.tell(client, text)

    def tell(self, client: Client, text: str) -> None:
        """Tell one client."""
        body: Body = {"category": "stderr", "output": f"dap-mux: {text}\n"}
        to_clients.send_event(self._core, client, "output", body)

    def tell_lasting(self, client: Client) -> None:
        """Tell a client that has just attached what was said before."""
        for text in self._lasting:
            self.tell(client, text)
