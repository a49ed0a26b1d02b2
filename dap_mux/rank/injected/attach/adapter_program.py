"""debugpy's adapter, which survives clients whose connection breaks, and lets them come back."""

from __future__ import annotations

import hmac
import locale
import os
import select
import socket
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from typing import Any

CLIENT_TIMEOUT_MS = 12_000
"""Of a client that acknowledges nothing: as long as a session waits for a rank's word. Without it
the kernel tries for a quarter of an hour, and whoever comes meanwhile is told that the process is
already being debugged."""
KEY = "dapMuxKey"
"""The argument of `attach` by which a session is known again; it goes no further than here."""
SESSION = "dapMux"
"""The argument of `initialize` that has it, too, for a rank that has no adapter yet."""
FREE_WITHIN_S = 2.0
"""Of a connection that its own session has replaced. debugpy holds a lock while it waits for the
rank, and needs it to let go of the connection."""

RANK_LOOK_S = 1.0
"""Between looks for the rank's process, where the system does not tell of its end."""
LAST_WORDS_S = 2.0
"""After the rank's end, for its connection to end by itself."""
LEAVE_WITHIN_S = 10.0
"""Of clients that have been told of the end."""


# `adapter_keeper` starts this program; otherwise it is what `debugpy.listen` starts. debugpy's own
# ends, or accepts nobody any more, when it writes to a client that has gone (measured): an answer
# to `evaluate`, the event `initialized`, the greeting of a new client while the last one still
# takes its leave.
def survive_broken_clients() -> None:
    """Drop what cannot be written to a client: the end of its connection is noticed anyway.

    But for requests, whose senders would wait for an answer.
    """
    stream: Any = import_module("debugpy.common.messaging").JsonIOStream
    sockets: Any = import_module("debugpy.common.sockets")
    write, serve = stream.write_json, sockets.serve

    def write_unless_gone(self: Any, value: Any, encoder: Any = None) -> None:
        try:
            write(self, value, encoder)
        except Exception:
            if not str(self.name).startswith("Client[") or value.get("type") == "request":
                raise

    def serve_for_ever(name: str, handler: Any, *arguments: Any, **named: Any) -> Any:
        def handle(sock: Any) -> None:
            with suppress(AttributeError, OSError):  # Linux has it
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, CLIENT_TIMEOUT_MS)
            with suppress(Exception):  # else nobody is accepted any more
                handler(sock)

        return serve(name, handle, *arguments, **named)

    stream.write_json = write_unless_gone
    sockets.serve = serve_for_ever


def let_sessions_come_back() -> None:
    """An `attach` takes the place of a connection whose own `attach` had the same key.

    debugpy refuses it until the end of the old connection has come through and is dealt with. A
    client without the key is refused as ever, and so is a client with another.
    """
    client: Any = import_module("debugpy.adapter.clients").Client
    connection: Any = import_module("debugpy.adapter.servers").Connection
    stream: Any = import_module("debugpy.common.messaging").JsonIOStream
    attach, hold, log = client.attach_request, connection.attach_to_session, stream._log_message  # noqa: SLF001

    def attach_with_key(self: Any, request: Any) -> Any:
        vars(self)[KEY] = request.arguments.pop(KEY, None)
        return attach(self, request)

    def replace_and_hold(self: Any, session: Any) -> None:
        holder = self.server
        if holder is not None and _are_the_same(holder.session.client, session.client):
            _replace(self, holder.session.client)
        hold(self, session)

    def log_without_key(self: Any, direction: str, data: Any, *rest: Any, **named: Any) -> Any:
        arguments = data.get("arguments") if isinstance(data, dict) else None
        for name in (KEY, SESSION):
            if isinstance(arguments, dict) and name in arguments:
                data = {**data, "arguments": {**arguments, name: "..."}}
        return log(self, direction, data, *rest, **named)

    client.attach_request, connection.attach_to_session = attach_with_key, replace_and_hold
    stream._log_message = log_without_key  # noqa: SLF001


def _are_the_same(old: Any, new: Any) -> bool:
    keys = vars(old).get(KEY), vars(new).get(KEY)
    texts = [key.encode() for key in keys if isinstance(key, str) and key]
    return len(texts) == len(keys) and hmac.compare_digest(*texts)


def _replace(connection: Any, client: Any) -> None:
    """End `client`'s connection, and wait until it has let go of `connection`, the rank's.

    If it does not, this process ends: the rank runs on, and starts another in its place. Not where
    child processes are debugged through it, too.
    """
    with suppress(Exception):  # not by its channel, whose lock a blocked write holds
        client.channel.stream._cleanup()  # noqa: SLF001
    deadline = time.monotonic() + FREE_WITHIN_S
    while connection.server is not None:
        if time.monotonic() > deadline:
            if len(import_module("debugpy.adapter.servers").connections()) == 1:
                os._exit(1)
            return
        time.sleep(0.01)


def end_with(rank: int) -> None:
    """Do not outlive the rank. `rank`: its pid.

    debugpy's adapter ends with the last connection to a process that is debugged. There is none yet
    where the rank is killed in the midst of starting us, and one that does not end where a child
    that it has forked holds it, too.
    """
    if hasattr(os, "fork"):  # we go on in a process of our own
        thread = threading.Thread(target=_see_out, args=(rank,), daemon=True)
        os.register_at_fork(after_in_child=thread.start)


def _see_out(rank: int) -> None:
    _wait_for_end(rank)
    time.sleep(LAST_WORDS_S)
    servers: Any = import_module("debugpy.adapter.servers")
    for connection in servers.connections():
        if connection.pid == rank:
            with suppress(Exception):
                connection.channel.stream._cleanup()  # noqa: SLF001
    with suppress(Exception):
        servers.dont_wait_for_first_connection()
    quiet_since = time.monotonic()
    while time.monotonic() < quiet_since + LEAVE_WITHIN_S:
        time.sleep(RANK_LOOK_S)
        if servers.connections():  # a child process of the rank is debugged through us
            quiet_since = time.monotonic()
    os._exit(0)


def _wait_for_end(pid: int) -> None:
    """Wait until a process has ended, which need not be a child of ours."""
    try:
        return _wait_by_kernel(pid)
    except (AttributeError, OSError):  # or it has ended already
        pass
    with suppress(ProcessLookupError):
        while True:
            with suppress(PermissionError):
                os.kill(pid, 0)
            time.sleep(RANK_LOOK_S)


def _wait_by_kernel(pid: int) -> None:
    """The same without a look every second: where there are pidfds (Linux) or kqueues (macOS)."""
    kernel: Any = select
    if hasattr(kernel, "kqueue"):
        end = kernel.kevent(pid, kernel.KQ_FILTER_PROC, kernel.KQ_EV_ADD, kernel.KQ_NOTE_EXIT)
        kernel.kqueue().control([end], 1)
    else:
        poll = kernel.poll()
        poll.register(os.pidfd_open(pid), kernel.POLLIN)
        poll.poll()


def run(parent: str, rank: int = 0) -> None:
    """Be the adapter until the rank has ended. `parent`: the folder that debugpy is in.

    `rank`: its pid; 0 where its end is noticed otherwise.
    """
    sys.path.insert(0, parent)
    try:
        import_module("debugpy")
    finally:
        del sys.path[0]
    if rank:
        end_with(rank)
    survive_broken_clients()
    with suppress(Exception):  # what it changes may be otherwise in another debugpy
        let_sessions_come_back()
    with suppress(Exception):
        locale.setlocale(locale.LC_ALL, "")
    import_module("debugpy.adapter.__main__").main()
