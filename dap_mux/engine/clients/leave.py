"""How a client leaves; the last controller's leaving releases every rank."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec import Struct

from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.messages import to_clients
from dap_mux.engine.outputs import CloseClient, EndJob
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.protocol.arguments import DisconnectArguments
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.validation import typed

RETURN_S: Final = 10.0  # VS Code attaches again within a second, after its tasks have run
NO_TERMINATE: Final = "this session does not own the job; `disconnect` leaves it running"


class ClientLeave(Struct, eq=False):
    """The engine's part that sees clients off."""

    _core: SessionState
    _lifecycle: Lifecycle
    _breakpoints: Breakpoints
    # who attaches again; until then, or so long
    _awaited: tuple[Client, int] | None = None

    def disconnect(self, request: ClientRequest) -> None:
        """`disconnect`: answered at once. Ends the job where it is ours and the client says so."""
        arguments = typed(request.arguments, DisconnectArguments)
        client = request.client
        client.leaving = True
        ends = self._wants_end(client, arguments) and self._may_end(client)
        returns = bool(arguments.restart) and not ends
        if client.role == "controller":
            to_clients.send_event(self._core, client, "terminated")  # first, as debugpy does
        to_clients.respond(self._core, request, self._farewell(client, returns=returns))
        self.gone(client, returns=returns)
        self._core.out.append(CloseClient(client.id))
        if ends:  # after the ranks' `disconnect`
            self._core.later(self._end_job)

    def _wants_end(self, client: Client, arguments: DisconnectArguments) -> bool:
        """Whether the job is to end with it.

        VS Code's Restart of an attached session is `restart` and `terminateDebuggee` at once: it
        would end a job that it cannot start again.
        """
        if arguments.restart and not client.launched:
            return False
        if arguments.terminateDebuggee is None:
            return client.launched and not arguments.restart
        return arguments.terminateDebuggee

    def _farewell(self, client: Client, *, returns: bool) -> Body | None:
        """Tell who hears of ranks whether its leaving lets them all run on."""
        if "ranks" not in client.events:
            return None
        others = self._core.clients.values()
        stay = any(one.role == "controller" for one in others if one is not client)
        return {"released": client.role == "controller" and not (stay or returns)}

    def _end_job(self) -> None:
        self._core.out.append(EndJob())

    def terminate(self, request: ClientRequest) -> None:
        """`terminate`: only where the ranks were started by us, and by a controller."""
        if not self._may_end(request.client):
            to_clients.refuse(self._core, request, NO_TERMINATE)
            return
        to_clients.respond(self._core, request)
        self._core.out.append(EndJob())

    def _may_end(self, client: Client) -> bool:
        return self._core.settings.owns_job and client.role == "controller"

    def gone(self, client: Client, *, returns: bool = False) -> None:
        """A client has left, politely or not.

        `returns`: to attach again at once, as VS Code restarts a session. Then the last
        controller's ranks keep what they are doing for some seconds, and their breakpoints.
        """
        if self._core.clients.pop(client.id, None) is None:
            return
        self._core.cancel(client.sync.timer)
        self._core.cancel(client.focus.held)
        if returns and client.role == "controller" and not self._controllers():
            self._awaited = client, self._core.after(RETURN_S, self.returned)
            return
        self._core.later(partial(self._breakpoints.forget, client))
        if client.role == "controller":
            self._core.later(self.release_if_alone)

    def returned(self) -> None:
        """Drop what was kept for a client that was expected back, attached again or not."""
        if self._awaited is not None:
            (client, timer), self._awaited = self._awaited, None
            self._core.cancel(timer)
            self._core.later(partial(self._breakpoints.forget, client))
            self._core.later(self.release_if_alone)

    def release_if_alone(self) -> None:
        """Without a controller there is nobody to continue the ranks: they are all let go."""
        if not self._controllers():
            self._release_all()

    def _controllers(self) -> list[Client]:
        """Return who is attached as one, configured or not."""
        return [client for client in self._core.clients.values() if client.role == "controller"]

    def _release_all(self) -> None:
        """Every rank runs on, and the session waits for the next controller."""
        self._core.flow.configured = False
        self._lifecycle.let_all_go()

    def say_goodbye(self) -> None:
        """The session is over: `terminated`, once, to everybody who was told of a beginning."""
        code = exit_code(self._core)
        for client in list(self._core.clients.values()):
            if client.attach is not None:
                pending, client.attach = client.attach, None
                to_clients.respond(self._core, pending)
            if client.role == "controller":
                if code is not None:
                    to_clients.send_event(self._core, client, "exited", {"exitCode": code})
                to_clients.send_event(self._core, client, "terminated")


def exit_code(core: SessionState) -> int | None:
    """Return the job's exit code for the `exited` event, None where nobody saw the ranks end.

    Zero if all ended with zero; else the first failing rank's, a signal n as 128 + n.
    """
    if core.flow.job_code is not None:
        return core.flow.job_code
    codes = [rank.exit_code for rank in core.sorted_ranks() if rank.exit_code is not None]
    if not codes:
        return None
    failed = next((code for code in codes if code), 0)
    return 128 - failed if failed < 0 else failed
