"""The door of a rank's port: it reads the first requests of a few connections at a time."""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dap_mux.rank.dap_message import NoMessage, message_in, missing, respond
from dap_mux.rank.in_process import start_hidden

BACKLOG = 128
MAX_OPEN = 6
"""Connections whose first request is to come, to be decided or refused; then the oldest of which
nothing is decided is closed, or else the new one."""
FILES_FOR_THE_PROGRAM = 16
FIRST_REQUEST_LIMIT_S = 10.0
LINGER_S = 2.0  # were it closed with bytes unread, a refusal might not arrive
PAUSE_S = 2.0  # where no descriptor is left
CHECK_INTERVAL_S = 0.25
READ_AT_ONCE = 4096  # bytes
CLOSED = -1  # the file number of a closed socket


class Visitor:
    """A connection, and what has been read of it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.read = b""
        self.request: dict[str, Any] = {}
        self.came = time.monotonic()
        self.until = self.came + FIRST_REQUEST_LIMIT_S
        self.waits = self.is_refused = False  # for a decision; by it

    def refuse(self, why: str) -> None:
        """Say so; whoever cannot be told is closed all the same."""
        self.is_refused = True
        with suppress(OSError):
            self.connection.setblocking(False)
            respond(self.connection, self.request, {}, why)
            self.connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Be done with it; harmless where its connection belongs to somebody else by now."""
        with suppress(OSError):
            self.connection.close()


# Connections are served inside the program's own process. With a thread and a descriptor for each,
# 1,170 strangers used up its descriptors, and the program ended (measured). So all are read by one
# thread, few are open at a time, and the process's last descriptors are left to the program.
class Door:
    """Accepts on a socket. `decide` is called with one visitor after another, whose request is in.

    It returns why a visitor is not let in; "": it is, and its connection is somebody else's now.
    """

    def __init__(self, listener: socket.socket, decide: Callable[[Visitor], str]) -> None:
        self.address: tuple[str, int] = listener.getsockname()[:2]
        self._listener = listener
        self._decide = decide
        self._inside: list[Visitor] = []
        self._undecided: deque[Visitor] = deque()
        self._decided: deque[Visitor] = deque()
        self._deciding = threading.Lock()
        self._shut = threading.Event()

    def open(self) -> None:
        """Accept from now on. Raises OSError if somebody else has the port."""
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)

    def serve(self) -> None:
        """Read first requests until the door is closed."""
        kind = getattr(selectors, "PollSelector", selectors.SelectSelector)  # neither is a file
        with kind() as ready, suppress(OSError, ValueError):  # of a closed listener
            ready.register(self._listener, selectors.EVENT_READ)
            while not self._shut.is_set():
                pause = CHECK_INTERVAL_S if self._inside else None
                for key, _ in ready.select(pause):
                    if key.fileobj is self._listener:
                        self._accept(ready)
                    elif key.data in self._inside:  # it may have had to make room just now
                        self._hear(ready, key.data)
                self._see_out(ready)
        for visitor in self._inside:
            if not visitor.waits:
                visitor.close()

    def close(self) -> None:
        """Accept nobody any more."""
        self._shut.set()
        with suppress(OSError):  # which wakes whoever looks at it; closing alone does not
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def forget(self) -> None:
        """In a forked child, which has nothing to do with it."""
        self._shut.set()
        for sock in (self._listener, *(visitor.connection for visitor in self._inside)):
            if sock.fileno() != CLOSED:
                with suppress(OSError):  # whoever forked may have closed all files of the child
                    os.close(sock.detach())

    def _accept(self, ready: selectors.BaseSelector) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):  # gone again
            return
        except OSError:  # no descriptor is left, say
            self._shut.wait(PAUSE_S)
            return
        if connection.fileno() >= _most_files() - FILES_FOR_THE_PROGRAM or not self._room(ready):
            connection.close()
            return
        connection.setblocking(False)
        visitor = Visitor(connection)
        self._inside.append(visitor)
        ready.register(connection, selectors.EVENT_READ, visitor)

    def _room(self, ready: selectors.BaseSelector) -> bool:
        self._see_out(ready)
        if len(self._inside) >= MAX_OPEN:
            undecided = (visitor for visitor in self._inside if not visitor.waits)
            oldest = next(undecided, None)
            if oldest is None:
                return False
            self._end(ready, oldest)
        return True

    def _hear(self, ready: selectors.BaseSelector, visitor: Visitor) -> None:
        try:
            data = visitor.connection.recv(READ_AT_ONCE)
            if not data:
                raise ConnectionError
            if visitor.is_refused:  # what else it says does not matter
                return
            visitor.read += data
            if missing(visitor.read) != 0:
                return
            visitor.request = message_in(visitor.read)
            visitor.connection.setblocking(True)
        except BlockingIOError:
            return
        except (OSError, NoMessage):
            self._end(ready, visitor)
            return
        visitor.waits = True
        ready.unregister(visitor.connection)
        with self._deciding:
            self._undecided.append(visitor)
            if len(self._undecided) == 1:
                start_hidden(self._decide_all, name="dap-mux decision")

    def _decide_all(self) -> None:
        """Decide until nobody waits: it may take as long as an adapter takes to start."""
        while True:
            visitor = self._undecided[0]
            try:
                refusal = self._decide(visitor)
            except Exception:  # noqa: BLE001 - the program must not see a traceback of ours
                visitor.close()
            else:
                if refusal:
                    visitor.refuse(refusal)
            with self._deciding:
                self._decided.append(visitor)
                self._undecided.popleft()
                if not self._undecided:
                    return

    def _see_out(self, ready: selectors.BaseSelector) -> None:
        """Watch those that were refused until they have gone, and end whoever takes too long."""
        while self._decided:
            visitor = self._decided.popleft()
            visitor.waits, visitor.until = False, time.monotonic() + LINGER_S
            if visitor.connection.fileno() == CLOSED:  # or let in
                self._inside.remove(visitor)
            else:  # refused
                ready.register(visitor.connection, selectors.EVENT_READ, visitor)
        now = time.monotonic()
        for visitor in [each for each in self._inside if not each.waits and each.until < now]:
            self._end(ready, visitor)

    def _end(self, ready: selectors.BaseSelector, visitor: Visitor) -> None:
        ready.unregister(visitor.connection)
        self._inside.remove(visitor)
        visitor.close()


if sys.platform == "win32":

    def _most_files() -> float:
        return float("inf")

else:
    import resource

    def _most_files() -> float:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return float("inf") if soft == resource.RLIM_INFINITY else soft
