"""What is done about an unforeseen exception: it harms one request, or nothing.

`Engine.receive` runs each input so, and so do the few loops that call several who wait for the
same: one that fails does not keep the others from theirs. What has been put out before the
exception stays out, because the state that goes with it has been changed too. The request on whose
behalf something was done (`SessionState.cause`) is answered with an error, with the number under
which the log has the traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.session import SessionState
from dap_mux.errors import StaleHandle, UsageError

EXPECTED = (StaleHandle, UsageError)  # a sentence for the user; nothing is wrong with us


def run(core: SessionState, cause: ClientRequest | None, call: Callable[[], None]) -> bool:
    """Call it on behalf of `cause`; False where it has failed, which is seen to here."""
    before, core.cause = core.cause, cause
    done = core.guard(call, partial(_caught, core))
    core.cause = before
    return done


def _caught(core: SessionState, error: Exception) -> None:
    request = core.cause
    waits = request is not None and not request.answered
    text = str(error) if waits and isinstance(error, EXPECTED) else core.fault(error)
    if request is not None and waits:
        to_clients.refuse(core, request, text)
        request.failed = True
