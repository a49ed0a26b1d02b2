"""Start debugpy's adapter again, on the same port, where it has ended or accepts nobody any more.

Private interfaces of debugpy, so whoever calls this must expect any exception; then a rank's port
goes with its adapter, as debugpy has it.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

KEPT_AS = "dap_mux_adapter"
"""The debugger's attribute that holds the keeper, so that there is one."""
START_TIMEOUT_S = 30.0
PAUSES_S = (0.0, 0.5, 1.0, 2.0, 5.0)
"""Before each attempt to start it; after the last the rank has no port any more."""
LOOK_EVERY_S = 1.0
LOOK_CLOSELY_S = 60.0
"""So long after a debugger has left, or the start. Later looks are fewer, for one in `PROC_TABLES`
costs 5 ms of CPU where the kernel's table of connections is large (by netlink 0.02 ms)."""
LOOK_LATER_EVERY_S = 10.0
LOOKS = 3
"""So often in a row somebody has to wait to be accepted."""
PROC_TABLES: dict[int, str] = {socket.AF_INET: "/proc/net/tcp", socket.AF_INET6: "/proc/net/tcp6"}
# From linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h; all in the machine's byte order
# except ports.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
TCP_LISTEN = 10
NLMSGHDR = struct.Struct("=IHHII")
INET_DIAG_REQ_V2 = struct.Struct("=BBBxI48x")
INET_DIAG_MSG = struct.Struct("=BBBB2s46xIIIII")
PROGRAM = "DAP_MUX_ADAPTER_PROGRAM"
"""The variable that its program is in. A pipe would be held open by a child that the rank forks at
that moment."""
COMMAND = "import sys; sys.path[:1] = [] if sys.path[0] == '' else sys.path[:1];"
COMMAND += f" import os; exec(os.environ.pop({PROGRAM!r}))  # debugpy.adapter"


def keep_adapter(debugger: Any, program: str) -> None:
    """See to it that `debugger`, a PyDB, has an adapter. `program`: `adapter_program`'s text."""
    keeper = getattr(debugger, KEPT_AS, None)
    if keeper is None:
        api = import_module("debugpy.server.api")
        started = api._adapter_process  # noqa: SLF001
        if started is None or _setup().get("ppid"):
            return  # there is none (the rank calls its session, say), or it is a parent's
        words = [str(word) for word in started.args]
        keeper = Keeper(debugger, words[words.index("--for-server") :], program)
        setattr(debugger, KEPT_AS, keeper)
    keeper.watch()


# debugpy's adapter is a process of its own between a rank and its debuggers, and it does not
# survive every broken connection: then the rank runs on, but its port was gone for ever (measured).
# Here the rank notices, lets its program run on as after a `disconnect`, and starts
# `adapter_program` in its place.
class Keeper:
    """The adapter of one rank. `arguments`: those of `debugpy.listen` for it."""

    def __init__(self, debugger: Any, arguments: list[str], program: str) -> None:
        self._debugger = debugger
        pairs = zip(arguments[::2], arguments[1::2])  # noqa: B905  (Python 3.8 has no `strict`)
        self._arguments = dict(pairs)
        self._program = program
        config = import_module("debugpy.server.api")._config  # noqa: SLF001
        self._python = config.get("python", sys.executable)
        self._watched: Any = None
        self._debugged = threading.Event()
        self._debugged.set()
        met, left = debugger.on_initialize, debugger.on_disconnect

        def meet() -> None:
            self._debugged.set()
            met()

        def leave() -> None:
            left()
            self.look_while_nobody_is_here()

        debugger.on_initialize, debugger.on_disconnect = meet, leave
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_forked_child)

    def _in_forked_child(self) -> None:
        """It has a copy of our connection, whose end the adapter would not see before the child's.

        A child that is debugged makes its own.
        """
        with suppress(Exception):
            os.close(self._debugger.reader.sock.detach())

    def watch(self) -> None:
        """Notice the end of the adapter that the debugger is connected to now."""
        debugger = self._debugger
        reader, writer = debugger.reader, debugger.writer
        if self._watched is reader or self._arguments["--port"] == "0":
            return
        self._watched = reader
        ended = reader._terminate_on_socket_close  # noqa: SLF001
        vars(writer)["_WriterThread__terminate_on_socket_close"] = False  # the reader notices, too
        reader._terminate_on_socket_close = lambda: self._has_ended(ended)  # noqa: SLF001

    def _has_ended(self, give_up: Any) -> None:
        """In the reader's thread, whose connection is at its end."""
        for pause in PAUSES_S:
            time.sleep(pause)
            if self._debugger.pydb_disposed or sys.is_finalizing():
                break  # it is the process that ends
            try:
                run_on(self._debugger)
                self._start()
            except Exception:  # noqa: BLE001,S112  (the port is not free yet, say)
                continue
            return
        give_up()

    def _start(self) -> None:
        """Start an adapter, and connect to it."""
        address = started(self._spawn)
        link = import_module("_pydevd_bundle.pydevd_comm").start_client(*address)
        self._debugger._client_socket = link  # noqa: SLF001
        self._debugger.initialize_network(link)
        _setup()["port"] = address[1]  # for its children
        self.watch()

    def _spawn(self, port: int) -> None:
        arguments = {**self._arguments, "--for-server": str(port)}
        words = [word for pair in arguments.items() for word in pair]
        parent = Path(import_module("debugpy").__file__ or "").resolve().parent.parent
        program = f"{self._program}\nrun({str(parent)!r}, {os.getpid()})\n"
        monkey = import_module("_pydev_bundle.pydev_monkey")
        with monkey.skip_subprocess_arg_patch():  # it is no child to be debugged
            subprocess.run(
                [self._python, "-c", COMMAND, *words],
                stdin=subprocess.DEVNULL,
                env={**os.environ, PROGRAM: program},
                check=False,
            )

    # An adapter that lives and accepts nobody: only while nobody debugs the rank can that be.

    def look_while_nobody_is_here(self) -> None:
        """Look whether somebody waits to be accepted, until a debugger comes."""
        if self._debugged.is_set() and Path("/proc/net/tcp").exists():
            self._debugged.clear()
            thread = threading.Thread(target=self._look, name="dap-mux adapter", daemon=True)
            vars(thread)["pydev_do_not_trace"] = vars(thread)["is_pydev_daemon_thread"] = True
            thread.start()

    def _look(self) -> None:
        looks, closely_until = 0, time.monotonic() + LOOK_CLOSELY_S
        pause = LOOK_EVERY_S
        while not self._debugged.wait(pause):
            if self._debugger.pydb_disposed:
                return
            with suppress(OSError, ValueError):
                looks = looks + 1 if self._somebody_waits() else 0
                if looks == LOOKS:
                    self._kill()
            closely = looks > 0 or time.monotonic() < closely_until
            pause = LOOK_EVERY_S if closely else LOOK_LATER_EVERY_S

    def _somebody_waits(self) -> bool:
        """Whether there is a connection to our port that the adapter has not accepted."""
        family = socket.AF_INET6 if ":" in self._arguments["--host"] else socket.AF_INET
        return bool(unaccepted(int(self._arguments["--port"]), family))

    def _kill(self) -> None:
        token = self._arguments["--server-access-token"].encode()
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and token in (folder / "cmdline").read_bytes():
                    os.kill(int(folder.name), 9)


def run_on(debugger: Any) -> None:
    """Do as debugpy does at a `disconnect`: remove all breakpoints, and continue."""
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI()
    with debugger._main_lock:  # noqa: SLF001
        debugger.enable_output_redirection(False, False)
        api.request_disconnect(debugger, resume_threads=True)


def started(spawn: Callable[[int], None]) -> tuple[str, int]:
    """Have an adapter started; return where it awaits the process that it is to debug.

    `spawn` gets the port for its `--for-server`. Raises OSError, ValueError, KeyError or TypeError.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        listener.settimeout(START_TIMEOUT_S)
        spawn(listener.getsockname()[1])
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as file:
            connection.settimeout(START_TIMEOUT_S)
            server = json.loads(file.read().decode("utf-8"))["server"]
    return server["host"], server["port"]


def unaccepted(port: int, family: int) -> int:
    """Return how many connections to a listening port of this machine wait to be accepted.

    Raises OSError or ValueError where the kernel does not tell.
    """
    try:
        return _unaccepted_by_netlink(port, family)
    except (OSError, struct.error):  # not every sandbox has it
        return _unaccepted_in_proc(port, family)


def _unaccepted_by_netlink(port: int, family: int) -> int:
    return sum(waiting for one, waiting, _ in listening_sockets(family) if one == port)


def listening_sockets(family: int) -> Iterator[tuple[int, int, int]]:
    """Yield port, backlog and inode of every listening TCP socket of this machine.

    Raises OSError or struct.error where the kernel does not tell.
    """
    asked = INET_DIAG_REQ_V2.pack(family, socket.IPPROTO_TCP, 0, 1 << TCP_LISTEN)
    size = NLMSGHDR.size + len(asked)
    header = NLMSGHDR.pack(size, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(header + asked)
        while True:
            answer, at = kernel.recv(1 << 16), 0
            while at < len(answer):
                size, kind = NLMSGHDR.unpack_from(answer, at)[:2]
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR or size < NLMSGHDR.size:
                    raise OSError("the kernel does not list its listening sockets")
                found = INET_DIAG_MSG.unpack_from(answer, at + NLMSGHDR.size)
                # of a listening socket, the queue is the backlog
                yield int.from_bytes(found[4], "big"), found[6], found[9]
                at += (size + 3) & ~3


def _unaccepted_in_proc(port: int, family: int) -> int:
    waiting = 0
    for line in Path(PROC_TABLES[family]).read_text("ascii").splitlines()[1:]:
        _, here, _, state, queues = line.split()[:5]
        if int(state, 16) == TCP_LISTEN and here.endswith(f":{port:04X}"):
            waiting += int(queues.split(":")[1], 16)
    return waiting


def _setup() -> Any:
    return import_module("pydevd").SetupHolder.setup or {}
