"""Detects a peer that has gone while we have data for it; keepalive covers idle connections.

TCP retransmits unacknowledged data for a quarter of an hour. TCP_USER_TIMEOUT would shorten that,
and also end connections to peers that are alive and do not read, such as a rank that hangs or a
busy editor (measured: Linux ends them although the probes of the closed window are answered). So
we ask the kernel since when the peer has not acknowledged anything.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Final

from dap_mux.shell.timers import Timer, Timers

CHECK_INTERVAL_S: Final = 3.0
ACK_TIMEOUT_S: Final = 9.0  # a dead peer is noticed within 15 s altogether
# struct tcp_info of linux/tcp.h: tcpi_probes; tcpi_unacked and tcpi_last_ack_recv (ms)
_INFO: Final = struct.Struct("=3xB4x4x4x4x4xI4x4x4x4x4x4x4xI")
_TCP_INFO: Final = getattr(socket, "TCP_INFO", None)
_SOME_PROBES: Final = 2  # one may be in flight


class LivenessMonitor:
    """Checks one connection periodically; calls `dead` with the reason once its peer is gone."""

    __slots__ = ("_dead", "_pending", "_sock", "_timer", "_timers")

    def __init__(
        self, sock: socket.socket | None, dead: Callable[[str], None], timers: Timers
    ) -> None:
        self._sock = sock
        self._dead = dead
        self._timers = timers
        self._timer: Timer | None = None
        self._pending = False  # at the last check
        if sock is not None and _TCP_INFO is not None:
            self._wait()

    def stop(self) -> None:
        """Stop checking: the connection has ended."""
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _wait(self) -> None:
        self._timer = self._timers.call_later(CHECK_INTERVAL_S, self._look)

    def _look(self) -> None:
        assert self._sock is not None
        silent = unacknowledged_for(self._sock)
        # Data sent just now is not late, however long ago the last acknowledgement came: a closed
        # window is probed less and less often.
        if silent < ACK_TIMEOUT_S or not self._pending:
            self._pending = silent > 0
            self._wait()
            return
        self._timer = None
        self._dead(f"the peer has not acknowledged anything for {silent:.0f} s")


def unacknowledged_for(sock: socket.socket) -> float:
    """Return for how long (s) the peer has not acknowledged pending data; 0.0 if it has."""
    assert _TCP_INFO is not None
    with contextlib.suppress(OSError):  # closed in the meantime
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _INFO.size)
        probes, unacked, last_ack = _INFO.unpack(info)
        if unacked or probes >= _SOME_PROBES:
            return float(last_ack) / 1000
    return 0.0
