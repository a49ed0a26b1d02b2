"""Forks the ranks of jobs; what takes long to import is imported once.

`python -m tests.why_score.parent MODULE…` reads one JSON line for each job, {"script": PATH,
"ranks": [{"port": N, "environ": {…}, "log": PATH}]}, and answers with the ranks' pids. It runs in a
job's Python.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn


def main(modules: list[str]) -> None:
    """Serve until the input ends."""
    for module in modules:
        import_module(module)
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps([_fork(job["script"], rank) for rank in job["ranks"]]), flush=True)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _fork(script: str, rank: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        _become(script, rank)
    return pid


def _become(script: str, rank: dict[str, Any]) -> NoReturn:
    """Be what `python -m dap_mux.rank --no-wait --port P SCRIPT` is."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    log = os.open(rank["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for descriptor, target in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(descriptor, target)
    os.environ.update(rank["environ"])
    sys.argv = ["dap_mux.rank", "--no-wait", "--port", str(rank["port"]), script]
    import_module("dap_mux.rank.__main__").main()
    raise SystemExit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
