"""What /proc says of processes and sockets that a test has made itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dap_mux.system import procfs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux has /proc")
NO_PROCESS = 2**22 + 1  # above the highest pid that Linux gives


def test_this_process() -> None:
    here = os.getpid()
    assert here in procfs.pids()
    assert procfs.runs(here)
    assert 0 < time.time() - (procfs.start_time(here) or 0.0) < 24 * 3600
    assert procfs.working_folder(here) == Path.cwd()
    assert procfs.executable(here) == Path(sys.executable).resolve()
    assert (procfs.command_line(here) or ())[0] == sys.orig_argv[0]
    assert procfs.environ(here).keys() >= {"PATH"}
    assert procfs.status("self")["Pid"] == str(here)
    assert procfs.namespace("pid").startswith("pid:[")


def test_a_process_that_is_not_there() -> None:
    assert procfs.stat(NO_PROCESS) is None
    assert not procfs.runs(NO_PROCESS)
    assert procfs.command_line(NO_PROCESS) is None
    assert procfs.start_time(NO_PROCESS) is None
    assert procfs.environ(NO_PROCESS) == {}
    assert procfs.socket_inodes(NO_PROCESS) == set()
    assert procfs.program(NO_PROCESS) == "?"


def test_a_name_may_contain_anything(tmp_path: Path) -> None:
    strange = tmp_path / ") R (x"
    strange.write_text("#!/bin/sh\nread line\n")
    strange.chmod(0o755)
    with subprocess.Popen([strange], stdin=subprocess.PIPE) as process:
        found = procfs.stat(process.pid)
    assert found is not None
    assert found.state in "RSD"
    assert found.started.isdigit()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_sockets(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection((host, port)) as client:
            own = client.getsockname()[1]
            rows = [row for row in procfs.tcp_sockets() if row.host == host]
            (waiting,) = (one for one in rows if (one.port, one.state) == (port, procfs.LISTEN))
            (ours,) = (one for one in rows if (one.port, one.remote_port) == (own, port))
            assert (waiting.host, waiting.port, waiting.queue) == (host, port, 1)
            assert ours.state == procfs.ESTABLISHED
            assert ours.uid == os.getuid()
            assert ours.inode in procfs.socket_inodes("self")
