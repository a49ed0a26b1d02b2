"""Every error that dap-mux raises, named by whose fault it was.

`UsageError` is the user's, `ClientFault` the peer's at the client port, `RankFault` the
rank's; `InternalFault` is ours. Each carries one plain sentence: what, which rank, why,
what helps.
"""

from __future__ import annotations


class DapMuxError(Exception):
    """Base of all; `str(error)` is what the user reads."""


class UsageError(DapMuxError):
    """The user's words are off: a bad option, rank set or configuration (exit code 2)."""


class NothingToConnect(DapMuxError):
    """No rank, or no session, where one was asked for (exit code 3)."""


class Refused(DapMuxError):
    """Not allowed: binding, token or user (exit code 4)."""


class PeerFault(DapMuxError):
    """A peer broke the wire format; that peer's connection is closed and nobody else's."""


class StaleHandle(DapMuxError):
    """A frame, variable or thread id that was never ours, or whose rank has run on since."""
