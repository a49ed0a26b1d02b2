"""Starts debugpy on this rank's port."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import debugpy  # noqa: T100

from dap_mux.rank.debugger_wait import note_debugger_visits
from dap_mux.rank.hidden_frames import hide_our_frames
from dap_mux.rank.in_process import CannotListen
from dap_mux.rank.injected import attach, evaluation, source_of
from dap_mux.rank.injected.attach import adapter_keeper, conditions, tracing
from dap_mux.rank.own_port import has_been_opened, listen_at

OLDEST_DEBUGPY = (1, 8, 0)
SUPPORTED_DEBUGPY = (
    "1.8.14"  # as in pyproject.toml; what lies between the two works as far as tried
)
LAST_PORT = 65535
ANY_PORT = 0
CAN_HAND_OVER = hasattr(socket, "send_fds")


def candidate_ports(first: int, world_size: int) -> Iterator[int]:
    """The ports to try, best first: `first`, then the same place in the worlds after ours.

    Steps of `world_size` keep ranks that look for another port at the same moment from
    meeting each other. Beyond the last port number the system chooses.
    """
    if first != ANY_PORT:
        yield from range(first, LAST_PORT + 1, max(world_size, 1))
    yield ANY_PORT


def listen(host: str, ports: Iterable[int]) -> tuple[str, int]:
    """Listen on the first port of `ports` that is free; returns the address in use.

    Raises `CannotListen`. Children of the rank are kept out of debugpy: they would wait for
    a debugger of their own for ever (measured with debugpy 1.8.22).
    """
    serve = _listen_by_itself if CAN_HAND_OVER else _listen_by_an_adapter
    for port in ports:
        address = serve(host, port)
        if address is not None:
            _answer_to_the_program(*address)
            return address
    raise CannotListen(f"no free port on {host}")


def _listen_by_itself(host: str, port: int) -> tuple[str, int] | None:
    """Let this process accept connections; returns the address, or None if the port is taken."""
    listener = _bound(host, port)
    if listener is None:
        return None
    try:
        return listen_at(listener, prepare_debugger)
    except OSError:
        listener.close()
        return None


def _bound(host: str, port: int) -> socket.socket | None:
    """Return a socket bound to a port, None if that cannot be had now. Raises `CannotListen`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # As debugpy's own listener does: a port in TIME_WAIT is free, one in LISTEN is not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if isinstance(error, socket.gaierror):
            raise CannotListen(f"{host}: {error.strerror}") from error
        return None
    return listener


def _listen_by_an_adapter(host: str, port: int) -> tuple[str, int] | None:
    """Let debugpy's adapter do it, where clients cannot be handed to one later: on Windows."""
    debugpy.configure(subProcess=False)
    if not _is_free(host, port):
        return None
    try:
        address: tuple[str, int] = debugpy.listen((host, port))  # noqa: T100
    except RuntimeError as error:
        if _is_free(host, port):  # then the port is not what went wrong
            raise CannotListen(str(error)) from error
        return None
    prepare_debugger()
    debugger = sys.modules["pydevd"].get_global_debugger()
    with suppress(Exception):
        attach.send_without_delay(debugger)
    # From now on, and not only from the first attach on: a line may break in the midst of that.
    with suppress(Exception):
        adapter_keeper.keep_adapter(debugger, source_of("attach/adapter_program"))
    return address


def is_debugged() -> bool:
    """Whether this process already runs under a debugger that was not started by us."""
    pydevd = sys.modules.get("pydevd")
    return not has_been_opened() and pydevd is not None and pydevd.get_global_debugger() is not None


def prepare_debugger() -> None:
    """Set debugpy up for this rank, before anybody attaches; it must be started already."""
    hide_our_frames()
    note_debugger_visits()
    _speed_up()


def _speed_up() -> None:
    """From now on debugpy costs next to nothing until somebody attaches.

    Conditions cost less afterwards, and an `evaluate` without a frame is answered. Where debugpy's
    private parts have changed, or where its platform cannot trace threads that run already, it does
    as it does.
    """
    debugger = sys.modules["pydevd"].get_global_debugger()
    with suppress(Exception):
        conditions.compile_once(debugger)
    with suppress(Exception):
        evaluation.answer_without_frame()
    with suppress(Exception):
        tracing.follow_clients(debugger)
        tracing.turn_off(debugger)


def refuse_old_debugpy() -> None:
    """Raises `CannotListen` where nothing is known of this debugpy."""
    found = re.match(r"\d+\.\d+\.\d+", debugpy.__version__)
    if found and tuple(map(int, found[0].split("."))) < OLDEST_DEBUGPY:
        raise CannotListen(
            f"debugpy {debugpy.__version__} is too old, dap-mux needs {SUPPORTED_DEBUGPY} "
            f"or newer: {sys.executable} -m pip install 'debugpy>={SUPPORTED_DEBUGPY}'"
        )


def _answer_to_the_program(host: str, port: int) -> None:
    """A program that listens by itself gets our address; debugpy refuses a second `listen`."""
    debugpy.listen = lambda *_arguments, **_options: (host, port)


def _is_free(host: str, port: int) -> bool:
    """Whether `port` can be bound now. Another process may still be faster: see `listen`."""
    probe = _bound(host, port)
    if probe is not None:
        probe.close()
    return probe is not None
