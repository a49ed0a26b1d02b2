"""The lines between a session and the process that reports an engine's ranks: JSON objects."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

_writing = threading.Lock()


# To the session, on stdout:
#
# {"ranks": [...]}                         all present ranks, each as in a ranks file (`userThreads`
#                                          and `swallowsExceptions` too), and as well
#                                          `incarnation` (differs between processes of one rank),
#                                          `waits` (why it is expected, but not there), `ready`
# {"notice": "..."}                        a message for the user
# {"exited": {"group", "rank", "code"}}    sent before the `ranks` that lack this rank
# {"failed": "...", "help": "..."}         what went wrong and what helps; nothing follows
# {"end": true}                            the cluster has ended; nothing follows
#
# From the session, on stdin; its end means: take everything of ours out of the cluster, and exit.
#
# {"stopped": true}                        whether the debugger holds any rank stopped
def report(**line: Any) -> None:
    """Report one of the lines above: `ranks`, a `notice`, the `end`."""
    with _writing:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def fail(what: str, help: str = "") -> NoReturn:
    """Report what went wrong and what helps, and exit."""
    report(failed=what, help=help)
    sys.exit(1)


def read_session(stopped: Callable[[bool], object]) -> None:
    """Call `stopped` whenever the session stops or continues ranks; return when it leaves."""
    for line in sys.stdin:
        stopped(bool(json.loads(line).get("stopped")))
