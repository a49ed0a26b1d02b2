"""The life of a rank's connection: every transition there is, as one literal table.

The whole state machine is here; `lifecycle` only decides which signal has come.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from dap_mux.pure.errors import DapMuxError


class Phase(enum.Enum):
    """The phase of a rank's connection.

    Its value: a name, the state that users see, and whether requests can be sent.
    """

    IDLE = ("idle", "waiting")  # known, but no controller has asked to attach
    WAITING = ("waiting", "waiting")  # failed or lost; the next attempt comes with a deadline
    CONNECTING = ("connecting", "connecting")  # TCP under way
    GREETING = ("greeting", "connecting", True)  # TCP up; `initialize` sent, adapter not ready yet
    ATTACHING = ("attaching", "connecting", True)  # `attach` sent, `initialized` not seen
    CONFIGURING = ("configuring", "connecting", True)  # breakpoints are sent; held until configured
    STARTING = ("starting", "connecting", True)  # `configurationDone` due or sent, no answer yet
    LIVE = ("live", "running", True)  # attached
    # Left before `attach`, which must be sent first.
    LEAVING_EARLY = ("leaving early", "running", True)
    LEAVING = ("leaving", "running", True)  # `disconnect` due or sent, the link not closed yet
    RELEASED = ("released", "running")  # detached on request; runs on without us
    GONE = ("gone", "exited")  # its process ended

    def __init__(self, label: str, state: str, linked: bool = False) -> None:
        self.label = label
        self.state = state
        self.linked = linked
        # Asked thousands of times at once: no properties, and no look-up of a member to compare
        # with, which takes Python 3.11 ten times as long as one of these.
        self.live = label == "live"
        self.handshake = state == "connecting"  # a step of it: users see them all as one
        self.trying = self.handshake or label == "waiting"  # we try to attach the rank
        self.configurable = label in ("configuring", "starting", "live")  # it takes breakpoints
        # it takes breakpoints now, or will once it is connected
        self.configurable_soon = self.live or self.handshake
        self.leaving = label.startswith("leaving")  # being detached, its connection still open

    # Members are singletons: the C hash by identity, not Enum's in Python, on the hot path.
    __hash__ = object.__hash__


class AfterLeaving(enum.Enum):
    """What happens after a rank is detached; its program runs on in any case."""

    RETURN = "return"  # attached again for the next client
    STAY_AWAY = "stay away"  # released, until a client asks for it
    FORGET = "forget"


class Signal(enum.Enum):
    """The events of a rank's connection."""

    CONNECT = "connect"
    UP = "up"
    READY = "ready"
    INITIALIZED = "initialized"
    CONFIGURED = "configured"
    ATTACHED = "attached"
    DOWN = "down"
    LEAVE = "leave"
    RELEASE = "release"
    END = "end"
    RETURN = "return"

    __hash__ = object.__hash__  # as `Phase`


# Once `attach` is sent, and before: an adapter that is left then closes its port for ever.
_LINKED: Final = {
    Signal.DOWN: Phase.WAITING,
    Signal.LEAVE: Phase.LEAVING,
    Signal.RELEASE: Phase.LEAVING,
    Signal.END: Phase.GONE,
}
_EARLY: Final = {
    **_LINKED,
    Signal.LEAVE: Phase.LEAVING_EARLY,
    Signal.RELEASE: Phase.LEAVING_EARLY,
}

# LEAVE detaches a linked rank; without a link there is nothing to detach.
TRANSITIONS: Final[Mapping[Phase, Mapping[Signal, Phase]]] = {
    Phase.IDLE: {
        Signal.CONNECT: Phase.CONNECTING,
        Signal.RELEASE: Phase.RELEASED,
        Signal.END: Phase.GONE,
    },
    Phase.WAITING: {
        Signal.CONNECT: Phase.CONNECTING,
        Signal.LEAVE: Phase.IDLE,
        Signal.RELEASE: Phase.RELEASED,
        Signal.END: Phase.GONE,
    },
    Phase.CONNECTING: {Signal.UP: Phase.GREETING, **_EARLY},
    Phase.GREETING: {Signal.READY: Phase.ATTACHING, **_EARLY},
    Phase.ATTACHING: {Signal.INITIALIZED: Phase.CONFIGURING, **_LINKED},
    Phase.CONFIGURING: {Signal.CONFIGURED: Phase.STARTING, **_LINKED},
    Phase.STARTING: {Signal.ATTACHED: Phase.LIVE, **_LINKED},
    Phase.LIVE: _LINKED,
    # A rank that is left becomes IDLE or RELEASED, as its `AfterLeaving` says.
    Phase.LEAVING_EARLY: {
        Signal.LEAVE: Phase.LEAVING,
        Signal.DOWN: Phase.IDLE,
        Signal.RELEASE: Phase.RELEASED,
        Signal.END: Phase.GONE,
    },
    Phase.LEAVING: {
        Signal.DOWN: Phase.IDLE,
        Signal.RELEASE: Phase.RELEASED,
        Signal.END: Phase.GONE,
    },
    Phase.RELEASED: {Signal.CONNECT: Phase.CONNECTING, Signal.END: Phase.GONE},
    # An elastic restart: the same rank in a new process, which may or may not listen yet.
    Phase.GONE: {Signal.CONNECT: Phase.CONNECTING, Signal.RETURN: Phase.IDLE},
}


class IllegalTransition(DapMuxError):
    """A defect of ours: the table has no such transition."""


def step(phase: Phase, signal: Signal) -> Phase:
    """Return the phase after `signal`; raise `IllegalTransition` where the table has none."""
    try:
        return TRANSITIONS[phase][signal]
    except KeyError:
        raise IllegalTransition(f"{signal.value} while {phase.label}") from None
