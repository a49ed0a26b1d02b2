"""Contain an unforeseen exception: it fails one request, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

from dap_mux.engine.inputs import Input
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.session import Postponed, SessionState
from dap_mux.pure.errors import StaleHandle, UsageError

P = ParamSpec("P")
EXPECTED = (StaleHandle, UsageError)  # a sentence for the user; nothing is wrong with us


# `Engine.receive` runs each input under the guard, and each call that was put off meanwhile
# (`SessionState.later`). Nothing else of the engine catches exceptions of every kind. What has been
# put out before the exception stays out, because the state that goes with it has been changed too.
# The request on whose behalf something was done (`SessionState.cause`) is answered with an error,
# with the number under which the log has the traceback.
def run(
    core: SessionState, take: Callable[[Any], None], event: Input, settle: Callable[[], None]
) -> None:
    """Take an input, and do what is put off meanwhile: each right after the call that put it off.

    Then `settle` is called, again and again until no rank has changed any more. Lean: every message
    comes through here.
    """
    core.cause = None
    try:
        take(event)
    except Exception as error:  # noqa: BLE001 - the next call is made, whatever this one was
        _caught(core, error)
    core.cause = None
    while core.postponed or core.touched:
        if core.postponed:
            _run_postponed(core)
        else:
            settle()


def _run_postponed(core: SessionState) -> None:
    calls: list[Postponed] = []
    while core.postponed or calls:
        calls.extend(reversed(core.postponed))
        core.postponed.clear()
        _guard(core, *calls.pop())


def call_each(
    core: SessionState, calls: Iterable[Callable[P, None]], *args: P.args, **kwargs: P.kwargs
) -> None:
    """Make these calls on nobody's behalf; an exception in one keeps none of the others back."""
    for call in calls:
        try:
            call(*args, **kwargs)
        except Exception as error:  # noqa: BLE001, PERF203 - the next call is made all the same
            _caught(core, error)


def _guard(core: SessionState, call: Callable[[], None], cause: ClientRequest | None) -> None:
    core.cause = cause
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the next call is made, whatever this one was
        _caught(core, error)
    core.cause = None


def _caught(core: SessionState, error: Exception) -> None:
    request = core.cause
    waits = request is not None and not request.answered
    text = str(error) if waits and isinstance(error, EXPECTED) else core.fault(error)
    if request is not None and waits:
        to_clients.refuse(core, request, text)
        request.failed = True
