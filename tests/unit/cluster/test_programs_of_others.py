"""Which programs are started that another process names: none that others can have made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dap_mux.cluster.injection import injector_command
from dap_mux.cluster.python_process import RunningPython
from dap_mux.pure.errors import Refused
from dap_mux.session.outside_view import PY_SPY, find_py_spy
from dap_mux.system.user_files import startable
from tests.support.processes.commands import COMMAND

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
NOBODY = 65534


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scripts of an environment with a py-spy; there is no other one."""
    spy = tmp_path / PY_SPY
    spy.write_text("#!/bin/sh\n", "ascii")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    return tmp_path


@contextmanager
def process(folder: Path, user: int, program: Path = Path("/bin/sleep")) -> Iterator[int]:
    """A process whose program seems to be that folder's Python."""
    words = [str(folder / "python"), "60"]
    with subprocess.Popen(words, executable=program, user=user) as one:
        try:
            # `Popen` returns as the files are closed that exec closes; the words come after that.
            while not Path(f"/proc/{one.pid}/cmdline").read_bytes():
                pass
            yield one.pid
        finally:
            one.kill()


def test_the_one_beside_a_process_of_the_same_user_is_found(environment: Path) -> None:
    with process(environment, os.geteuid()) as pid:
        assert find_py_spy(pid) == str(environment / PY_SPY)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another user's process")
def test_the_one_of_another_user_is_not(environment: Path) -> None:
    os.chown(environment / PY_SPY, NOBODY, NOBODY)
    for user in (NOBODY, 0):
        with process(environment, user) as pid:
            assert find_py_spy(pid) is None


@pytest.mark.parametrize("what", ["program", "folder", "above"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_others_can_have_made_is_not(tmp_path: Path, what: str) -> None:
    """The program itself, its folder or one above it is another user's, or everybody's."""
    folder = tmp_path / "above" / "folder"
    folder.mkdir(parents=True)
    program = folder / "program"
    program.write_text("#!/bin/sh\n", "ascii")
    one = {"program": program, "folder": folder, "above": folder.parent}[what]
    link = tmp_path / "link"
    link.symlink_to(program)
    assert startable(link) == program
    os.chown(one, NOBODY, NOBODY)
    assert startable(program) is startable(link) is None
    os.chown(one, 0, 0)
    one.chmod(0o777)
    assert startable(link) is None
    one.chmod(0o1777)
    assert startable(link) == (None if what == "program" else program)


def test_what_is_gone_or_leads_nowhere_is_not(tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    assert startable(tmp_path / "ring") is startable(tmp_path / "gone") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another user's process")
def test_no_command_starts_a_program_of_another_user() -> None:
    """As root, of a process of nobody's: the program that it runs, and what lies beside it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        marker, spy, program = folder / "marker", folder / PY_SPY, folder / "python3.98"
        spy.write_text(f"#!/bin/sh\ntouch {marker}\n", "ascii")
        shutil.copy("/bin/sleep", program)
        for each in (spy, program):
            each.chmod(0o755)
            os.chown(each, NOBODY, NOBODY)
        environ = {**os.environ, "XDG_RUNTIME_DIR": name, "PATH": "/nonexistent"}
        with process(folder, NOBODY, program) as pid:
            with pytest.raises(Refused, match=r"python3\.98, which dap-mux does not start"):
                injector_command(RunningPython(pid, (3, 98)), "127.0.0.1", "")
            for word in ("why", "stacks", "attach", "doctor"):
                words = [COMMAND, word, f"pid:{pid}"]
                done = subprocess.run(words, check=False, env=environ, cwd=folder)
                assert done.returncode or word == "doctor"
        assert not marker.exists()
