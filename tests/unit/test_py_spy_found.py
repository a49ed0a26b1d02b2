"""Which py-spy is started: never one that another user has put beside a Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dap_mux.cluster.py_spy import NAME, find_py_spy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
NOBODY = 65534


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scripts of an environment with a py-spy; there is no other one."""
    spy = tmp_path / NAME
    spy.write_text("#!/bin/sh\n", "ascii")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    return tmp_path


@contextmanager
def process(folder: Path, user: int) -> Iterator[int]:
    """A process whose program seems to be that folder's Python."""
    words = [str(folder / "python"), "60"]
    with subprocess.Popen(words, executable="/bin/sleep", user=user) as one:
        try:
            yield one.pid
        finally:
            one.kill()


def test_the_one_beside_a_process_of_the_same_user_is_found(environment: Path) -> None:
    with process(environment, os.geteuid()) as pid:
        assert find_py_spy(pid) == str(environment / NAME)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another user's process")
def test_the_one_of_another_user_is_not(environment: Path) -> None:
    with process(environment, NOBODY) as pid:
        assert find_py_spy(pid) is None
