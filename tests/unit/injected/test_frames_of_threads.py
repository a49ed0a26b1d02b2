"""The frames of other threads are looked at, and the process survives it."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.rank.injected.attach.tracing import _no_collection
from tests.conftest import rounds

PROGRAM: Final = Path(__file__).with_name("frames_of_threads.py")


def run(manner: str, seconds: int) -> int:
    """The exit code; negative: a signal."""
    command = [sys.executable, str(PROGRAM), manner, str(seconds)]
    return subprocess.run(command, check=False, capture_output=True, timeout=120).returncode


@pytest.mark.parametrize("manner", ["ours", "patched"])
def test_frames_are_frames(manner: str) -> None:
    assert run(manner, rounds(3)) == 0


def test_nothing_is_collected_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what the program wants of the collector holds again afterwards."""
    started: list[str] = []
    monkeypatch.setattr(gc, "callbacks", [lambda phase, _: started.append(phase)])
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with _no_collection():
            kept: list[Any] = [[each] for each in range(100)]
        assert (started, len(kept), gc.isenabled()) == ([], 100, True)
        gc.disable()
        with _no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.set_threshold(*before)
