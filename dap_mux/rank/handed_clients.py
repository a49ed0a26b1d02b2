"""debugpy's adapter, in the process that `own_port` starts: its clients are handed to it.

It listens on no port for them. When the last client has gone the process ends, unless child
processes of the rank may come to it.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from dap_mux.rank.injected.attach import adapter_program

LENGTH = struct.Struct("!?I")
"""The header sent with a client: whether this process stays for good, and the bytes read so far."""
TAKEN = b"k"
LAST_WORDS_LIMIT_S = 5.0


class Handed(socket.socket):
    """A client's connection. `read`: what the rank has read of it."""

    def __init__(self, handle: int, read: bytes) -> None:
        super().__init__(fileno=handle)
        self._read = read

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """As ever, but what has been read comes first."""
        if not self._read:
            return super().recv_into(buffer, nbytes, flags)
        size = min(len(self._read), nbytes or len(buffer))
        memoryview(buffer)[:size] = self._read[:size]
        self._read = self._read[size:]
        return size


class HandedClients:
    """In debugpy's eyes a socket that listens at `address`, which is the rank's.

    `control`: where the rank hands clients over. It ends when the rank does.
    """

    def __init__(self, control: socket.socket, address: tuple[str, int]) -> None:
        self._control = control
        self._address = address
        self._taking = threading.Lock()
        self._stays = False

    def getsockname(self) -> tuple[str, int]:
        """The address that clients know."""
        return self._address

    def close(self) -> None:
        """Do nothing: only `control` is open, and that belongs to the rank."""

    def serve(self, handler: Callable[[socket.socket], Any]) -> None:
        """Give every client to `handler`, in threads of their own."""
        threading.Thread(target=self._receive, args=(handler,), daemon=True).start()

    def _receive(self, handler: Callable[[socket.socket], Any]) -> None:
        first = True
        with suppress(OSError, struct.error):
            while True:
                word, handles, _, _ = socket.recv_fds(self._control, LENGTH.size, 1)
                stays, length = LENGTH.unpack(word)
                read = self._control.recv(length, socket.MSG_WAITALL) if length else b""
                with self._taking:
                    self._stays |= stays
                    handler(Handed(handles[0], read))
                    self._control.sendall(TAKEN)
                if first:
                    threading.Thread(target=self._end_with_the_last, daemon=True).start()
                first = False
        # The rank has ended, or given us up. What clients are still to be told they are told.
        telling = threading.Thread(target=_wait_for_sessions, daemon=True)
        telling.start()
        telling.join(LAST_WORDS_LIMIT_S)
        os._exit(0)

    def _end_with_the_last(self) -> None:
        sessions: Any = import_module("debugpy.adapter.sessions")
        while True:
            _wait_for_sessions()
            with self._taking:
                if not self._stays and not sessions._sessions:  # noqa: SLF001
                    os._exit(0)
                if self._stays:
                    return


def _wait_for_sessions() -> None:
    sessions: Any = import_module("debugpy.adapter.sessions")
    sessions.wait_until_ended()


def run(parent: str, control: int) -> None:
    """Be the adapter. `parent`: the folder that debugpy is in; `control`: a socket's handle."""
    sys.path.insert(0, parent)
    sockets: Any = import_module("debugpy.common.sockets")
    del sys.path[0]
    usual = sockets.serve

    def serve(name: str, handler: Any, host: str, port: int = 0, **named: Any) -> Any:
        if name != "Client":
            return usual(name, handler, host, port, **named)
        clients = HandedClients(socket.socket(fileno=control), (host, port))
        clients.serve(handler)
        return clients

    sockets.serve = serve
    adapter_program.run(parent)
