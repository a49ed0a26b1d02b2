"""What a session patches in a rank, on the debugger of a real debugpy."""

from __future__ import annotations

import os
import socket
from typing import Any, Final

import pytest

from dap_mux.engine.ranks.patching import PROGRAM_OVER, attach_expression
from dap_mux.rank.injected import attach
from dap_mux.session.session import injected_sources

SOURCES: Final = injected_sources().all
PATCHES: Final = [patch[:2] for patch in attach.patches(None, "", "")]


@pytest.mark.parametrize(("module", "function"), PATCHES, ids=[patch[1] for patch in PATCHES])
def test_each_patch_fits_this_debugpy(
    debugger: Any, monkeypatch: pytest.MonkeyPatch, module: str, function: str
) -> None:
    """Also twice: `attach` itself would swallow the error."""
    monkeypatch.setattr(attach, "_modules", {})
    (patch,) = (
        patch
        for patch in attach.patches(debugger, SOURCES["adapter_program"], PROGRAM_OVER)
        if patch[:2] == (module, function)
    )
    for _ in range(2):
        attach.run(SOURCES, patch)


def test_all_of_them(debugger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the expression that a rank evaluates. Each module is compiled once."""
    monkeypatch.setattr("pydevd.get_global_debugger", lambda: debugger)
    expression = attach_expression(injected_sources(), debug_children=False)
    names: dict[str, Any] = {}
    for _ in range(2):
        no_delay, children, *process = eval(expression, names).split(" ")
        assert (no_delay, children) == ("True", "True")
        assert str(os.getpid()) in process or process == [""]
    assert set(names) == {"__builtins__"}
    assert debugger.writer.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    (kept,) = (
        value
        for name, value in vars(debugger).items()
        if name.startswith("dap_mux_") and isinstance(value, dict)
    )
    compiled = kept["_modules"]
    assert {name for name, _ in PATCHES} < compiled.keys()
    before = dict(compiled)
    eval(expression, names)
    assert all(compiled[name] is names for name, names in before.items())


@pytest.mark.parametrize("function", ["leave_children_alone", "debug_children"])
def test_whether_children_are_patched(
    debugger: Any, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkey: Any = __import__("_pydev_bundle.pydev_monkey", fromlist=["x"])
    asked: list[str] = []
    monkeypatch.setattr(monkey, "patch_new_process_functions", lambda: asked.append("patched"))
    for other in ("leave_children_alone", "debug_children", function):
        attach.run(SOURCES, ("child_processes", other, ()))
    assert monkey._get_apply_arg_patching() is (function == "debug_children")
    assert asked


def test_a_pydevd_that_asks_something_else_about_children(
    debugger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, for children would wait for ever."""
    monkeypatch.setattr("_pydev_bundle.pydev_monkey._get_apply_arg_patching", object())
    told = attach.attach(debugger, SOURCES, False, PROGRAM_OVER)
    assert told.startswith("True False ")
