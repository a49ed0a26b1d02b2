"""Tracing is set in many threads at once, and none of them is refused for another's sake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PROGRAM: Final = Path(__file__).with_name("settrace_in_threads.py")
REFUSED: Final = "Cannot install a trace function while another trace function is being installed"


def run(hook: str, manner: str, times: int = 20_000) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), hook, manner, str(times)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("hook", "manner"), [("ours", "plain"), ("python", "patient")])
def test_no_thread_is_refused(hook: str, manner: str) -> None:
    done = run(hook, manner)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 has mended it")
def test_an_audit_hook_in_python_is_why() -> None:
    """Else neither `on_audit_event` nor the patience of `injected.attach.tracing` is needed."""
    assert REFUSED in run("python", "plain", 10_000_000).stdout
