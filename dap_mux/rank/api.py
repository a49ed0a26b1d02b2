"""The API for programs and launchers: listen, wait for a debugger, stop here.

A process has one debugger. All functions may be called repeatedly and from any thread: the first
call opens the port, later ones find it open. `import dap_mux` brings `listen`,
`wait_for_client` and `settrace`.
"""

from __future__ import annotations

import builtins
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import debugpy  # noqa: T100

from dap_mux.rank import post_mortem
from dap_mux.rank.black_box import kept_on_this_host
from dap_mux.rank.debugger_wait import (
    OnTimeout,
    on_timeout_of,
    stop_at_first_line,
    timeout_of,
    wait_or_end,
)
from dap_mux.rank.dial import ADDRESS, Target, dial, target_of
from dap_mux.rank.environ import (
    COMM,
    COMM_MODES,
    DEFAULT_BASE_PORT,
    DEFAULT_LIMIT_S,
    REPLAY,
    TAKE,
    Place,
    first_port,
    hold_of,
    place_of,
)
from dap_mux.rank.listen import (
    candidate_ports,
    is_debugged,
    prepare_debugger,
    refuse_old_debugpy,
)
from dap_mux.rank.listen import listen as listen_on
from dap_mux.rank.own_port import stop_listening as close_port
from dap_mux.rank.pickled_code import keep_file_names
from dap_mux.rank.ready import (
    LOOPBACK,
    RENDEZVOUS,
    failure_file,
    record_of,
    rendezvous_file,
    say,
    write_ready_file,
)
from dap_mux.rank.starter import STARTER, ends_with_starter

# `breakpoint()` stops in an attached debugger; otherwise it does what it did before us.
#
# debugpy takes `sys.breakpointhook` when it starts, and its hook does nothing while no debugger is
# attached: then the breakpoints of a framework that has a hook of its own (Ray, Monarch) are lost.
# Others set the hook after us, and a breakpoint would leave the session. So the hook stays theirs,
# and the builtin that calls it is ours. With Python's own hook before us and no `PYTHONBREAKPOINT`,
# a `breakpoint()` without a debugger does nothing, as under debugpy by itself: pdb would read from
# a terminal that a rank does not have.

BREAKPOINT_VARIABLE = "PYTHONBREAKPOINT"
DEBUGPYS = frozenset({"pydevd", "debugpy._vendored.force_pydevd"})
"""The modules whose hooks are debugpy's own."""

_usual: Callable[..., Any] = builtins.breakpoint


@contextmanager
def keep_breakpoint_hook() -> Iterator[None]:
    """Start debugpy inside: afterwards `sys.breakpointhook` is again what the program had set.

    Where that fails, with any exception, the builtin stays Python's.
    """
    before = sys.breakpointhook
    try:
        yield
    finally:
        if before is not sys.__breakpointhook__ and not _is_debugpys(before):
            sys.breakpointhook = before
        elif not _is_debugpys(sys.breakpointhook):  # given back, and debugpy sets it only once
            sys.breakpointhook = _debugpys_hook()
    builtins.breakpoint = breakpoint_or_usual


def breakpoint_or_usual(*arguments: Any, **named: Any) -> Any:
    """The builtin `breakpoint` of a rank."""
    if debugpy.is_client_connected():
        debugpy.breakpoint()  # noqa: T100  (our frames are hidden: it stops in the caller's)
        return None
    if _is_debugpys(sys.breakpointhook) and _variable_names_another():
        return sys.__breakpointhook__(*arguments, **named)  # noqa: T100  (it heeds the variable)
    return _usual(*arguments, **named)


def give_breakpoint_back() -> None:
    """Make `breakpoint()` what it is without a debugger, in a process that has none any more."""
    builtins.breakpoint = _usual
    if _is_debugpys(sys.breakpointhook):
        sys.breakpointhook = sys.__breakpointhook__


def _debugpys_hook() -> Callable[..., Any]:
    module = sys.modules.get("debugpy._vendored.force_pydevd")
    hook: Callable[..., Any] = getattr(module, "debugpy_breakpointhook", sys.breakpointhook)
    return hook


def _variable_names_another() -> bool:
    """A debugger named there has had its client: the next breakpoint does not wait for another."""
    named = os.environ.get(BREAKPOINT_VARIABLE, "")
    return not f"{named}.".startswith((".", "dap_mux.", "debugpy."))


def _is_debugpys(hook: Callable[..., Any]) -> bool:
    return getattr(hook, "__module__", None) in DEBUGPYS


# So that it is found, and pickled, under its usual name.
breakpoint_or_usual.__module__ = "builtins"
breakpoint_or_usual.__name__ = breakpoint_or_usual.__qualname__ = "breakpoint"


# The name by which a rank in a Kubernetes pod is reached from outside.

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def word_of_this_pod(port: int) -> str | None:
    """Return what follows `dap-mux attach` on a machine with kubectl; None outside of a pod."""
    try:
        namespace = (ACCOUNT / "namespace").read_text("ascii").strip()
    except (OSError, ValueError):
        namespace = ""
    return word_of(os.environ, socket.gethostname(), namespace, port)


def word_of(environ: Mapping[str, str], hostname: str, namespace: str, port: int) -> str | None:
    """The same for this environment.

    A pod's host name is its own name; that of a pod of an indexed job is its job's, and its index.
    """
    if "KUBERNETES_SERVICE_HOST" not in environ:
        return None
    name = environ.get("POD_NAME") or hostname
    index = environ.get("JOB_COMPLETION_INDEX")
    if index and name == hostname and name.endswith(f"-{index}"):
        name = f"job/{name[: -len(index) - 1]}"
    namespace = environ.get("POD_NAMESPACE") or namespace
    where = f"{namespace}/{name}" if namespace else name
    return f"k8s:{where}" if port == DEFAULT_BASE_PORT else f"k8s:{where}:{port}"


# A child that a rank forks, a DataLoader's worker say: it has debugpy's hooks, and no debugpy.
#
# None of debugpy's threads is in it, so a breakpoint that it ran into would hold it for ever
# (measured with debugpy 1.8.22; `subProcess=False` does not help). It runs as without a debugger.


def run_on_without_debugger() -> None:
    """Take debugpy's hooks out of this process. Private interfaces of debugpy."""
    give_breakpoint_back()
    threading.settrace(None)
    with suppress(Exception):
        if sys.version_info >= (3, 12) and sys.monitoring.get_tool(sys.monitoring.DEBUGGER_ID):
            _stop_monitoring()
        else:
            sys.modules["pydevd_tracing"].SetTrace(None)


def _stop_monitoring() -> None:
    """Without callbacks, what is still asked for code that was seen before leads nowhere."""
    if sys.version_info >= (3, 12):
        debugger, events = sys.monitoring.DEBUGGER_ID, sys.monitoring.events
        sys.monitoring.set_events(debugger, events.NO_EVENTS)
        for name in vars(events):
            if name.isupper() and getattr(events, name):
                with suppress(ValueError):  # some of them are no events of their own
                    sys.monitoring.register_callback(debugger, getattr(events, name), None)


class _Started:
    """The state of this process: whether it listens already."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.address: tuple[str, int] | None = None
        self.forked_from: tuple[str, int] | None = None
        self.told = False  # in a forked child: that it has been reported

    def in_forked_child(self) -> None:
        """A forked child has none of debugpy's threads: a stop in it would last forever."""
        self.lock, self.forked_from = threading.Lock(), self.address
        if self.address is not None:
            run_on_without_debugger()


_started = _Started()


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How a process becomes a rank under a debugger."""

    place: Place | None = None
    """Which rank this is; None: what the launcher's variables say."""
    host: str = "127.0.0.1"
    port: int | None = None
    base_port: int | None = None
    """Rank 0's port. Neither this nor `port`: the port that `DEBUG_PORT_NAME` names, else 5678."""
    ready_file: Path | None = None
    """Written once it listens; so is the folder that `DAP_MUX_RENDEZVOUS` names."""
    wait: bool = False
    """Whether to wait for a debugger, at most `timeout` seconds (None: forever)."""
    timeout: float | None = None
    on_timeout: OnTimeout = "exit"
    stop_on_entry: bool = False
    quiet: bool = False
    """Whether the starter of this process tells the user where it listens."""
    traits: Mapping[str, object] = field(default_factory=dict)
    """More fields of its record: what its framework knows, such as `userThreads`."""
    by_engine: bool = False
    """Whether an engine tells the session where this process listens: nothing else does then."""
    hold: float | None = DEFAULT_LIMIT_S
    """Seconds that an uncaught exception is held, unless `DAP_MUX_POST_MORTEM` says otherwise."""
    comm: str | None = None
    """One of `environ.COMM_MODES`; None: what `DAP_MUX_COMM` says at first, later no change."""


def start(setup: Setup) -> tuple[str, int]:
    """Make this process a rank under a debugger; what launchers call. Returns host and port.

    A second call finds the port open, and only waits. Raises `CannotListen`, `NoSuchPort`, and
    ValueError for an invalid variable.
    """
    place = setup.place or place_of(os.environ)
    if _started.forked_from is not None:
        if not _started.told:
            say(
                place, f"has no debugger in its forked child {os.getpid()}, which continues without"
            )
        _started.told = True
        return _started.forked_from
    if setup.wait and os.environ.get(STARTER) and not ends_with_starter(os.environ):
        setup = replace(setup, traits={**setup.traits, "awaitsDebugger": True})
    address = _listen_once(place, setup)
    keep_file_names()
    if setup.wait:
        wait_or_end(place, setup.timeout, setup.on_timeout, since_start=True)
    if setup.stop_on_entry:
        stop_at_first_line()
    return address


def listen(
    port: int | None = None, *, host: str = "127.0.0.1", comm: str | None = None
) -> tuple[str, int]:
    """Let a debugger attach to this process. Returns the host and port that are listened on.

    Without `port` it is 5678 + the rank that the launcher's variables give, or the one that
    `DEBUG_PORT_NAME` names; a free one where that is taken. A process that has a debugger of
    somebody else's making gets port 0. `comm`: "time" records which communication calls of torch
    are open, for `why`; "off" takes that away again. Raises `CannotListen`, `NoSuchPort`, and
    ValueError for another `comm`.
    """
    # A program that was not launched by dap-mux does not wait for a debugger at its end.
    launched = os.environ.get(RENDEZVOUS) or os.environ.get(ADDRESS)
    hold = DEFAULT_LIMIT_S if launched else 0
    return start(Setup(host=host, port=port, hold=hold, comm=comm))


def stop_listening() -> None:
    """Let no debugger attach any more, until `start` is called again; one that is attached leaves.

    A rank that listens through debugpy's adapter (on Windows), or dials, keeps its connection.
    """
    with _started.lock:
        _started.address = None
        close_port()
        give_breakpoint_back()
        _record_calls(place_of(os.environ), "off")


def wait_for_client(timeout: float | None = None, on_timeout: OnTimeout | None = None) -> bool:
    """Wait until a debugger is attached, listening if need be. Whether one is.

    At most `timeout` seconds (default: `DEBUG_TIMEOUT`, else forever); then the process exits
    with 124, or this returns False where `on_timeout` is "continue" (default:
    `DEBUG_ON_TIMEOUT`, else "exit").
    """
    listen()
    if _started.forked_from is not None:
        return False
    limit = timeout_of(os.environ) if timeout is None else timeout
    return wait_or_end(place_of(os.environ), limit, on_timeout or on_timeout_of(os.environ))


def settrace(
    port: int | None = None,
    wait: bool = True,
    *,
    host: str = "127.0.0.1",
    timeout: float | None = None,
    on_timeout: OnTimeout | None = None,
) -> None:
    """Stop here, in a debugger: listen if need be, wait for one (`wait`), and stop.

    Without a debugger in the end (`wait=False`, or nobody came in time and `on_timeout` is
    "continue") the program runs on. The arguments are those of `listen` and `wait_for_client`.
    """
    listen(port, host=host)
    if wait:
        wait_for_client(timeout, on_timeout)
    if _started.forked_from is None:
        debugpy.breakpoint()  # noqa: T100  (our frames are hidden: it stops in the caller's)


def _listen_once(place: Place, setup: Setup) -> tuple[str, int]:
    with _started.lock:
        if _started.address is None:
            hold = hold_of(os.environ, setup.hold)
            _record_calls(place, setup.comm or os.environ.get(COMM) or "off")
            halt: Any = None
            if os.environ.get(TAKE) or os.environ.get(REPLAY):
                taking: Any = import_module("dap_mux.rank.take.begin")
                halt = taking.begin(place, lambda text: say(place, text))
            with keep_breakpoint_hook():
                _started.address = _listen(place, setup)
            if halt is not None:
                halt.begin(wait_for_client)
            told = _told_of_failures(setup)
            post_mortem.arm(place, hold, "{}:{}".format(*_started.address), told)
            return _started.address
        if setup.comm is not None:
            _record_calls(place, setup.comm)
        if setup.port not in (None, 0, _started.address[1]):
            say(place, f"already listens on {_started.address[1]}; port {setup.port} is not used")
        return _started.address


COMM_SWITCH = "dap_mux.rank.comm.switch"


def _record_calls(place: Place, mode: str) -> None:
    if mode not in COMM_MODES:
        raise ValueError(f"comm={mode}: must be one of {', '.join(COMM_MODES)}")
    if mode != "off" or COMM_SWITCH in sys.modules:
        switch: Any = import_module(COMM_SWITCH)  # nothing of it is loaded where it is off
        switch.begin(mode, lambda text: say(place, text), place.rank)


def _listen(place: Place, setup: Setup) -> tuple[str, int]:
    refuse_old_debugpy()
    if is_debugged():
        say(place, "already runs under debugpy; attach a debugger where that listens")
        prepare_debugger()
        return setup.host, 0
    target = None if setup.by_engine else target_of(os.environ)
    if target is not None:
        return _dial(place, target, setup)
    first = first_port(os.environ, place, setup.port, setup.base_port)
    address = listen_on(setup.host, candidate_ports(first, place.world_size or 1))
    _announce(place, address, setup)
    return address


def _told_of_failures(setup: Setup) -> list[Path]:
    """Return the files in which the starter of this process looks for failures."""
    files = [setup.ready_file] if setup.ready_file is not None else []
    folder = os.environ.get(RENDEZVOUS)
    if folder and Path(folder).is_dir():
        files.append(rendezvous_file(Path(folder)))
    elif folder and not setup.traits:  # engines kill their workers, which would leave theirs
        files.append(rendezvous_file(kept_on_this_host()))
    return [failure_file(file) for file in files]


def _dial(place: Place, target: Target, setup: Setup) -> tuple[str, int]:
    """The session knows from the call itself; whoever waits for a file learns that it was."""
    if not setup.quiet:
        say(place, f"connects to the debug session at {target}")
    address = dial(place, target, setup.traits)
    _write_record(record_of(place, *address, setup.traits), setup, in_folder=setup.quiet)
    return address


def _write_record(record: dict[str, object], setup: Setup, *, in_folder: bool) -> None:
    """Write it where somebody waits for it; `in_folder`: in our launcher's, too."""
    folder = os.environ.get(RENDEZVOUS)
    if setup.ready_file is not None:
        write_ready_file(setup.ready_file, record)
    if in_folder and folder and Path(folder).is_dir():  # it is not on other hosts
        write_ready_file(rendezvous_file(Path(folder)), record)


def _announce(place: Place, address: tuple[str, int], setup: Setup) -> None:
    """Tell the user's log, and whoever asked to be told.

    Only now: who connects to an adapter that is still starting can kill the rank (measured).
    """
    host, port = address
    record = record_of(place, host, port, setup.traits)
    _write_record(record, setup, in_folder=not setup.by_engine)
    if not setup.quiet:
        word = word_of_this_pod(port) or f"{record['host']}:{port}"
        say(
            place,
            f"listens for a debugger on {host}:{port} (pid {os.getpid()}): dap-mux attach {word}",
        )
    if host not in LOOPBACK:
        say(place, f"lets anyone who reaches {host}:{port} run code: debugpy has no authentication")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_started.in_forked_child)
