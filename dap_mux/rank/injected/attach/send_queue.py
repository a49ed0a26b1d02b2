"""Send answers and stops before what the program prints, and from the thread that has them."""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from importlib import import_module
from typing import Any

URGENT_EVENTS = frozenset({"stopped", "continued", "thread", "dapMuxHeld"})
MAX_WAITING_OUTPUT = 64 << 20  # bytes; then the oldest lines are left out, until half is left
MARK = "dapMuxMark"
"""The event whose `bytes` are to be confirmed: how much has been printed before it. An `evaluate`
of this and the number confirms it."""
MARK_EVERY = 12 << 10  # bytes of printed lines
WINDOW = 48 << 10  # bytes: one second of a tunnel of 50 kB/s
PATIENCE_S = 5.0
MAX_UNSENT = 16 << 10  # bytes in the kernel that cannot be overtaken any more
NO_WAIT = getattr(socket, "MSG_DONTWAIT", None)
NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25 if sys.platform == "linux" else None)


class Rest:
    """Bytes to be sent, in pydevd's eyes a command."""

    id = -1
    as_dict = None

    def __init__(self, data: bytes) -> None:
        self._data = data

    def send(self, sock: Any) -> None:
        """Write them."""
        sock.sendall(self._data)


# A tunnel takes megabytes before it blocks, and what it has taken cannot be overtaken. So an event
# follows printed lines every few kB, which the session confirms, and no more than `WINDOW` bytes of
# them are under way. A session that does not confirm for `PATIENCE_S` gets them without that limit,
# until it does. Private interfaces of debugpy, so whoever calls this must expect any exception.
class Window:
    """How many bytes of printed lines have been sent, and may be before the session confirms."""

    def __init__(self) -> None:
        self.sent = 0
        self._marked = self._confirmed = 0
        self._limited = self._ends = False
        self._held_since = 0.0

    def limit(self, limited: bool) -> None:
        """From now on the session confirms, or it does not any more."""
        self._limited, self._confirmed, self._held_since = limited, self.sent, 0.0

    def confirmed(self, count: int) -> None:
        """The session has got so many."""
        self._limited, self._confirmed, self._held_since = not self._ends, count, 0.0

    def end(self) -> None:
        """The writer's thread ends once nothing more is to be sent: it must not wait."""
        self._ends = True
        self.limit(False)

    def is_shut(self) -> bool:
        """Whether the session has to confirm some before more are sent."""
        if not self._limited or self.sent - self._confirmed <= WINDOW:
            return False
        self._held_since = self._held_since or time.monotonic()
        self._limited = time.monotonic() - self._held_since < PATIENCE_S
        return self._limited

    def sends(self, size: int) -> bool:
        """Count some; return whether the session is to be asked for them."""
        self.sent += size
        due = self._limited and self.sent - self._marked >= MARK_EVERY
        if due:
            self._marked = self.sent
        return due


# pydevd hands every message to a thread that writes one after the other: two switches between
# threads for each, and behind a slow tunnel an answer waits for all that was printed before. Here a
# message is written at once, by whichever thread has it, as long as the connection takes it. What
# it does not take waits: printed lines in their order, and answers and stops before them, in
# theirs. So nothing is overtaken while the connection keeps up.
class SendQueue:
    """In pydevd's eyes the queue of its writer, a thread; `earlier` is the one that it replaces.

    The writer's thread sends what it takes, so until it asks again nothing else may be sent.
    """

    def __init__(self, debugger: Any, writer: Any, earlier: Any) -> None:
        net = import_module("_pydevd_bundle.pydevd_net_command")
        self._exit = import_module("_pydevd_bundle.pydevd_comm_constants").CMD_EXIT
        self._get_protocol = net.get_protocol
        self._framed = (net.HTTP_PROTOCOL, net.HTTP_JSON_PROTOCOL)
        self._command = net.NetCommand
        self._debugger = debugger
        self._sock = writer.sock
        self._earlier = earlier
        self._process = os.getpid()
        # A finalizer that prints may run wherever the lock is held.
        self._changed = threading.Condition(threading.RLock())
        self._busy = True  # until the writer's thread has come from the earlier queue to this one
        self._rest: Any = None
        self._urgent: deque[Any] = deque()
        self._later: deque[Any] = deque()
        self._window = Window()
        self._waiting_output = 0
        self._left_out = 0  # lines

    # For pydevd

    def put(self, command: Any, _block: bool = False) -> None:
        """Send it, now or later."""
        if os.getpid() != self._process:
            return  # a forked child: the connection is its parent's
        with self._changed:
            if command.id == self._exit:
                self._window.end()
            if not self._goes_first(command) or not self._is_sent(command):
                self._add(command)
                self._changed.notify()

    def get(self, _block: bool, timeout: float) -> Any:
        """Return what is to be sent next, which the caller does before it asks again.

        Raises `queue.Empty` after `timeout` seconds.
        """
        with self._changed:
            self._busy = False
            if not self._has_next():
                self._changed.wait(timeout)
            if not self._has_next():
                raise queue.Empty
            self._busy = True
            return self._take()

    def empty(self) -> bool:
        """Whether nothing waits."""
        with self._changed:
            return not (self._comes_first() or self._later or self._left_out)

    # For the session

    def limit(self, limited: bool) -> None:
        """From now on it confirms what it has got, or it does not any more."""
        with self._changed:
            self._window.limit(limited)
            self._changed.notify()

    def confirmed(self, count: int) -> None:
        """It has got so many bytes of printed lines."""
        with self._changed:
            self._window.confirmed(count)
            self._changed.notify()

    # What waits

    def _comes_first(self) -> Any:
        return self._rest or self._earlier.queue or self._urgent

    def _has_next(self) -> bool:
        if self._comes_first():
            return True
        return bool(self._later or self._left_out) and not self._window.is_shut()

    def _goes_first(self, command: Any) -> bool:
        """Whether nothing is to be sent before it."""
        if self._busy or self._comes_first():
            return False
        waits = self._later or self._left_out or self._window.is_shut()
        return not waits or _is_urgent(command)

    def _take(self) -> Any:
        if self._rest:
            rest, self._rest = self._rest, None
            return rest
        if self._earlier.queue:
            return self._earlier.get_nowait()
        if self._left_out and not self._urgent:  # older than all that waits
            return self._note()
        command = (self._urgent or self._later).popleft()
        if _event(command) == "output":
            self._waiting_output -= _size(command)
        # In one write: pydevd takes two, and the adapter is woken by each.
        return Rest(self._data_of(command)) if self._is_plain(command) else command

    def _add(self, command: Any) -> None:
        if _is_urgent(command):
            self._urgent.append(command)
            return
        self._later.append(command)
        if _event(command) == "output":
            self._waiting_output += _size(command)
            if self._waiting_output > MAX_WAITING_OUTPUT:
                self._leave_out()

    def _leave_out(self) -> None:
        kept = []
        while self._waiting_output > MAX_WAITING_OUTPUT // 2:
            command = self._later.popleft()
            if _event(command) == "output":
                self._waiting_output -= _size(command)
                self._left_out += _lines(command)
            else:
                kept.append(command)
        self._later.extendleft(reversed(kept))

    def _note(self) -> Any:
        count, self._left_out = self._left_out, 0
        text = f"({count:,} lines of output left out: the connection is too slow for them)\n"
        return self._debugger.cmd_factory.make_io_message(text, 2)

    # Now

    def _is_sent(self, command: Any) -> bool:
        """Write a message, or as much of it as the connection takes; the rest goes next."""
        if NO_WAIT is None or not self._is_plain(command):
            return False
        data = _framed(command)
        self._busy = True
        sent = 0
        with suppress(OSError):  # what is wrong with the connection the writer's thread meets, too
            sent = self._sock.send(data, NO_WAIT)
        self._busy = False
        if not sent:
            return False
        rest = data[sent:] + self._mark(command)
        if rest:
            self._rest = Rest(rest)
        if self._has_next():
            self._changed.notify()
        return True

    def _is_plain(self, command: Any) -> bool:
        """Whether nothing is to be done about it but to write it."""
        if command.id == self._exit or not hasattr(command, "_as_bytes"):
            return False
        plain = not command._after_send and not self._debugger.dap_messages_listeners  # noqa: SLF001
        return plain and self._get_protocol() in self._framed

    def _data_of(self, command: Any) -> bytes:
        return _framed(command) + self._mark(command)

    def _mark(self, command: Any) -> bytes:
        """Return what asks the session to confirm what it has got, where that is due."""
        if _event(command) != "output" or not self._window.sends(_size(command)):
            return b""
        mark = {"type": "event", "event": MARK, "body": {"bytes": self._window.sent}}
        return _framed(self._command(0, 0, mark, is_json=True))


def answers_first(debugger: Any) -> None:
    """Let the writer of `debugger`, a PyDB, send in this way; another one does not.

    Until the next `disconnect` a session is expected to confirm what it gets.
    """
    writer = debugger.writer
    earlier = writer._cmd_queue  # noqa: SLF001
    if "dap_mux" in type(earlier).__module__:
        earlier.limit(True)
        return
    made = SendQueue(debugger, writer, earlier)
    if NOTSENT_LOWAT is not None:
        with suppress(OSError):  # an older kernel
            writer.sock.setsockopt(socket.IPPROTO_TCP, NOTSENT_LOWAT, MAX_UNSENT)
    made.limit(True)
    _confirm_by_evaluate()
    _unlimited_once_left(debugger)
    writer._cmd_queue = made  # noqa: SLF001
    earlier.put(import_module("_pydevd_bundle.pydevd_net_command").NULL_NET_COMMAND)  # wakes it


def _confirm_by_evaluate() -> None:
    """Take confirmations in the thread that reads: that for evaluations may sleep for 0.2 s."""
    kind: Any = import_module(
        "_pydevd_bundle.pydevd_process_net_command_json"
    ).PyDevJsonCommandProcessor
    command = import_module("_pydevd_bundle.pydevd_net_command").NetCommand
    evaluate = kind.on_evaluate_request

    def confirm_or_evaluate(self: Any, debugger: Any, request: Any) -> Any:
        name, _, count = request.arguments.expression.partition(" ")
        if name != MARK or not count.isdigit():
            return evaluate(self, debugger, request)
        with suppress(AttributeError):  # of a writer that is not patched yet
            debugger.writer._cmd_queue.confirmed(int(count))  # noqa: SLF001
        answer = {"type": "response", "command": "evaluate", "request_seq": request.seq}
        body = {"result": "", "variablesReference": 0}
        return command(0, 0, {**answer, "success": True, "body": body}, is_json=True)

    if evaluate.__name__ == "on_evaluate_request":
        kind.on_evaluate_request = confirm_or_evaluate


def _unlimited_once_left(debugger: Any) -> None:
    disconnected = debugger.on_disconnect
    if getattr(disconnected, "__name__", "") == "stop_limit_and_disconnect":
        return

    def stop_limit_and_disconnect() -> None:
        with suppress(Exception):
            debugger.writer._cmd_queue.limit(False)  # noqa: SLF001
        disconnected()

    debugger.on_disconnect = stop_limit_and_disconnect


def _event(command: Any) -> Any:
    return (command.as_dict or {}).get("event")


def _is_urgent(command: Any) -> bool:
    is_response = (command.as_dict or {}).get("type") == "response"
    return is_response or _event(command) in URGENT_EVENTS


def _framed(command: Any) -> bytes:
    body: bytes = command._as_bytes  # noqa: SLF001
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _lines(command: Any) -> int:
    return str(command.as_dict["body"].get("output", "")).count("\n")


def _size(command: Any) -> int:
    return len(command._as_bytes)  # noqa: SLF001
