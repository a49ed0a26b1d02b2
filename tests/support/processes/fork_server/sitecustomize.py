"""Makes `python -m debugpy` a process that forks ranks: it waits for requests before it reads argv.

Run by tests/support/processes/rank_forks.py. A request is a line of JSON: `argv` (of debugpy),
`env`, `folder`; with it come two descriptors, for the output of the fork and for its exit code.
The answer is the pid. A fork goes on where debugpy reads its arguments, so that its stack has no
frame that a rank started by hand would not have. The server ends with its socket.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from typing import Any

_before = set(os.environ)
import debugpy.common.log as debugpy_log  # noqa: E402
import debugpy.server.cli as debugpy_cli  # noqa: E402
from debugpy.server import api  # noqa: E402, F401 - imports pydevd

_set_by_import = {name: os.environ[name] for name in set(os.environ) - _before}

read_arguments = debugpy_cli.parse_args
describe = debugpy_log.describe_environment


def read_arguments_of_a_request() -> None:
    """In each fork: read the arguments of its request. The server itself does not return."""
    _serve(socket.socket(fileno=int(os.environ["FORK_SERVER_SOCKET"])))
    read_arguments()  # type: ignore[no-untyped-call]


def _serve(requests: socket.socket) -> None:
    """Return in each fork."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    gc.freeze()
    while True:
        watched: list[socket.socket | int] = [requests, wake]
        ready, _, _ = select.select(watched, [], [])
        if wake in ready:
            os.read(wake, 4096)
            _reap(running)
        if requests not in ready:
            continue
        line, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 2)
        if not line:
            os._exit(0)
        while not line.endswith(b"\n"):
            line += requests.recv(1 << 20)
        output, ended = descriptors
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (requests.detach(), wake, woken, ended, *running.values()):
                os.close(descriptor)
            return _become(json.loads(line), output)
        os.close(output)
        running[pid] = ended
        requests.sendall(b"%d" % pid)


def _reap(running: dict[int, int]) -> None:
    for pid in list(running):
        gone, status = os.waitpid(pid, os.WNOHANG)
        if gone:
            ended = running.pop(pid)
            with contextlib.suppress(BrokenPipeError):  # its test is over
                os.write(ended, b"%d" % os.waitstatus_to_exitcode(status))
            os.close(ended)


def _become(request: dict[str, Any], output: int) -> None:
    """What a shell and `python -m` do before a program begins."""
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update({**_set_by_import, **request["env"]})
    ours = os.path.dirname(__file__)  # noqa: PTH120 - as it stands in sys.path
    sys.path[:] = [request["folder"], *(part for part in sys.path[1:] if part != ours)]
    sys.argv[1:] = request["argv"]


def describe_for_a_log(header: str) -> None:
    """In each rank debugpy reads the metadata of every installed package twice, for its log."""
    if debugpy_log.log_dir is not None or "info" in debugpy_log.stderr.levels:
        describe(header)  # type: ignore[no-untyped-call]


debugpy_cli.parse_args = read_arguments_of_a_request
debugpy_log.describe_environment = describe_for_a_log
