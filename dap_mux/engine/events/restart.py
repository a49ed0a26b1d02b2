"""The job that a client has launched: that client may have it started again.

DAP, `restart`: the session, its clients and their breakpoints stay; the ranks' processes are new
ones, each with the thread id that its rank has had before.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.messages import to_clients
from dap_mux.engine.outputs import RestartJob
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.session import SessionState

NO_RESTART: Final = (
    "restart works only for a job that this client has launched; attach again to read the "
    "configuration anew, and start the job again where it was started"
)
RESTARTING: Final = "the job is already being restarted"


class JobRestart:
    """The engine's part that has the job started again."""

    def __init__(self, core: SessionState) -> None:
        self._core = core

    def restart(self, request: ClientRequest) -> None:
        """`restart`: answered at once; the old ranks' rows go, and the new ones' come."""
        flow = self._core.flow
        if (
            not self._core.settings.owns_job
            or not request.client.launched
            or flow.restarting
            or flow.ended
        ):
            problem = RESTARTING if flow.restarting else NO_RESTART
            to_clients.refuse(self._core, request, problem)
            return
        flow.restarting = True
        to_clients.respond(self._core, request)
        for client in self._core.clients.values():
            client.focus.rank = None  # nobody is shown one dying rank after the other
        self._core.out.append(RestartJob())
