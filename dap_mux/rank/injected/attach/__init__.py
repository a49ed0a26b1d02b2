"""What a rank runs when a session attaches to it: every patch, before the program runs on.

A rank keeps what is compiled here, so that the next session of the same version need not have it
compiled again.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    Patch = tuple[str, str, tuple[Any, ...]]  # a module, a function of it, and its arguments

FILE_NAME = "<builtin dap_mux>"
"""Modules are compiled under this name: pydevd neither steps into such frames nor shows them."""

_modules: dict[str, dict[str, Any]] = {}


def attach(
    debugger: Any,
    sources: dict[str, str],
    debug_children: bool,
    over: str,
    user_threads: bool = False,
) -> str:
    """Patch `debugger`, a PyDB; what fails stays as debugpy has it.

    `sources`: those of the other modules, by name; `over`: the event that announces the program's
    end; `user_threads`: whether threads in user code are told. Returns whether TCP_NODELAY is set,
    whether child processes are seen to, and which process this is.
    """
    children = "debug_children" if debug_children else "leave_children_alone"
    untraced: Any = run(sources, ("tracing", "untraced", (debugger,)))
    with untraced:
        no_delay = _succeeds(send_without_delay, debugger)
        children_seen_to = _succeeds(run, sources, ("child_processes", children, ()))
        for patch in patches(debugger, sources["adapter_program"], over):
            _succeeds(run, sources, patch)
        if user_threads:
            _succeeds(run, sources, ("reports", "tell_user_threads", (debugger,)))
        process = run(sources, ("process_identity", "process_identity", ()))
    return f"{no_delay} {children_seen_to} {process}"


def patches(debugger: Any, adapter_program: str, over: str) -> list[Patch]:
    """Every patch of the debugger, in the order in which they are applied."""
    return [
        ("reports", "stop_with_stack", (debugger,)),
        ("missing_files", "keep_breakpoints", (debugger,)),
        ("pydevd_patches", "end_wait_once_configured", (debugger,)),
        ("pydevd_patches", "resume_while_detached", (debugger,)),
        ("pydevd_patches", "forget_steps", (debugger,)),
        ("pydevd_patches", "continue_always_replies", (debugger,)),
        ("pydevd_patches", "drop_stale_evaluates", (debugger,)),
        ("pydevd_patches", "compile_watches_once", (debugger,)),
        ("pydevd_patches", "bound_exception_texts", (debugger,)),
        ("pydevd_patches", "wake_for_timeouts_only", (debugger,)),
        ("pydevd_patches", "wake_to_run_on", (debugger,)),
        ("pydevd_patches", "wake_to_step", (debugger,)),
        ("pydevd_patches", "skip_copied_exceptions", (debugger,)),
        ("send_queue", "answers_first", (debugger,)),
        ("pydevd_patches", "keep_redirectors", ()),
        ("pydevd_patches", "stop_in_users_frame", ()),
        ("reports", "tell_actors", (debugger,)),
        ("reports", "announce_end", (debugger, over)),
        ("adapter_keeper", "keep_adapter", (debugger, adapter_program)),
        ("conditions", "compile_once", (debugger,)),
        ("conditions", "fold_logpoints", (debugger,)),
        ("tracing", "look_at_threads_undisturbed", (debugger,)),
        ("tracing", "run_each_command_untraced", (debugger,)),
        # It wraps what others replace, so it comes last.
        ("tracing", "follow_clients", (debugger,)),
    ]


def run(sources: dict[str, str], patch: Patch) -> Any:
    """Apply a patch; its module is compiled once."""
    module, function, arguments = patch
    if module not in _modules:
        names: dict[str, Any] = {"__name__": f"dap_mux_{module}"}
        exec(compile(sources[module], FILE_NAME, "exec"), names)  # noqa: S102  (our own source)
        _modules[module] = names
    return _modules[module][function](*arguments)


def send_without_delay(debugger: Any) -> None:
    """44 ms a request: pydevd writes header and body separately, and the second waits (Nagle)."""
    sock = debugger.writer.sock
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY):
        raise OSError("TCP_NODELAY was not taken")


def _succeeds(function: Any, *arguments: Any) -> bool:
    try:
        function(*arguments)
    except Exception:  # noqa: BLE001  (private parts of debugpy may have changed in any way)
        return False
    return True
