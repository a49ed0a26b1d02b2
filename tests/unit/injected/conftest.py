"""debugpy's own debugger object in this process: not connected, and nothing is traced."""

from __future__ import annotations

import queue
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

import pytest

PATCHED: Final = (
    ("_pydevd_bundle.pydevd_api", "PyDevdAPI.request_disconnect"),
    ("_pydevd_bundle.pydevd_api", "PyDevdAPI.request_exec_or_evaluate_json"),
    ("_pydevd_bundle.pydevd_api", "PyDevdAPI.request_resume_thread"),
    ("_pydevd_bundle.pydevd_comm", "InternalGetThreadStack.can_be_executed_by"),
    ("_pydevd_bundle.pydevd_comm", "InternalThreadCommand.do_it"),
    ("_pydevd_bundle.pydevd_comm", "_evaluate_response"),
    ("_pydevd_bundle.pydevd_comm", "build_exception_info_response"),
    ("_pydevd_bundle.pydevd_io", "IORedirector"),
    ("_pydevd_bundle.pydevd_net_command_factory_json", "build_exception_info_response"),
    (
        "_pydevd_bundle.pydevd_process_net_command_json",
        "PyDevJsonCommandProcessor.on_evaluate_request",
    ),
    ("_pydevd_bundle.pydevd_timeout", "_TimeoutThread.add_on_timeout_handle"),
    ("_pydevd_bundle.pydevd_vars", "compile_as_eval"),
    ("_pydev_bundle.pydev_monkey", "_get_apply_arg_patching"),
    ("pydevd", "ThreadsSuspendedSingleNotification.add_on_resumed_callback"),
    ("pydevd", "ThreadsSuspendedSingleNotification.on_thread_resume"),
)
"""What patches replace beside the debugger's own attributes: as before when a test ends."""


@pytest.fixture
def debugger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A PyDB, whose writer collects commands in `sent`."""
    import_module("debugpy.server.api")  # which finds the others
    for module, path in PATCHED:
        owner: Any = import_module(module)
        *classes, name = path.split(".")
        for each in classes:
            owner = getattr(owner, each)
        monkeypatch.setattr(owner, name, getattr(owner, name))
    db = import_module("pydevd").PyDB(set_as_global=False)
    with socket.socket() as sock:
        db.writer = Writer(sock)
        yield db


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place where a rank keeps what it was sent, in a process without debugpy."""
    kept = SimpleNamespace()
    pydevd = SimpleNamespace(get_global_debugger=lambda: kept)
    monkeypatch.setitem(sys.modules, "pydevd", pydevd)


class Writer(SimpleNamespace):
    """As much of pydevd's as is used: a thread of its own otherwise sends what is added."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock=sock, sent=[], _cmd_queue=queue.Queue())

    def add_command(self, command: Any) -> None:
        """Send it, some time."""
        self.sent.append(command)
