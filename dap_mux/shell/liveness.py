"""Noticing a peer that is gone while we have something for it; keepalive does the rest.

Keepalive probes an idle connection only; data that nobody acknowledges is sent again for a
quarter of an hour. TCP_USER_TIMEOUT would end that sooner, and with it every peer that is alive
and does not read (measured: Linux ends it after that time although the probes of its closed
window are answered): a rank that hangs, an editor that is busy. So the kernel is asked who has
acknowledged what.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Final

CHECK_INTERVAL_S: Final = 4.0  # s between two looks
ACK_TIMEOUT_S: Final = 12.0  # s without any acknowledgement; with CHECK_INTERVAL_S below 20 s
# struct tcp_info of linux/tcp.h: tcpi_probes; tcpi_unacked and tcpi_last_ack_recv (ms)
_INFO: Final = struct.Struct("=3xB4x4x4x4x4xI4x4x4x4x4x4x4xI")
_TCP_INFO: Final = getattr(socket, "TCP_INFO", None)
_SOME_PROBES: Final = 2  # one may just be under way


class LivenessMonitor:
    """Looks at one connection now and then; calls `dead` with the reason when its peer is gone."""

    def __init__(self, sock: socket.socket | None, dead: Callable[[str], None]) -> None:
        self._sock = sock
        self._dead = dead
        self._timer: asyncio.TimerHandle | None = None
        self._owed = False  # at the last look
        if sock is not None and _TCP_INFO is not None:
            self._wait()

    def stop(self) -> None:
        """The connection is over."""
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(CHECK_INTERVAL_S, self._look)

    def _look(self) -> None:
        assert self._sock is not None
        silent = unacknowledged_for(self._sock)
        # What was sent only just now is not late, however long ago the last acknowledgement came:
        # a closed window is probed ever more seldom.
        if silent < ACK_TIMEOUT_S or not self._owed:
            self._owed = silent > 0
            self._wait()
            return
        self._timer = None
        self._dead(f"nothing that was sent is acknowledged since {silent:.0f} s")


def unacknowledged_for(sock: socket.socket) -> float:
    """Return since when (s) the peer acknowledges nothing although it should; 0.0 if it does."""
    assert _TCP_INFO is not None
    with contextlib.suppress(OSError):  # closed meanwhile
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _INFO.size)
        probes, unacked, last_ack = _INFO.unpack(info)
        if unacked or probes >= _SOME_PROBES:
            return float(last_ack) / 1000
    return 0.0
