"""Run by `test_settrace_in_threads`: two threads that set their trace function again and again.

The first argument is the audit hook: `python`, or `ours`. The second is how a thread sets its
function: `plain`, or `patient`. The third is how often, unless a thread is refused. Exit code 1: a
thread was refused.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from dap_mux.rank.injected.attach.tracing import _Patient
from dap_mux.rank.post_mortem import on_audit_event

heard: list[str] = []
refused: list[RuntimeError] = []


def hear(event: str, arguments: tuple[object, ...]) -> None:
    """As short as an audit hook in Python can be."""


def work(set_trace: Callable[[None], None], times: int) -> None:
    """Set this thread's trace function, as debugpy does in every thread."""
    try:
        for _ in range(times):
            set_trace(None)
            if refused:
                break
    except RuntimeError as error:
        refused.append(error)


def main(hook: str, manner: str, times: str) -> int:
    """Return the exit code."""
    if hook == "ours":
        on_audit_event("dap_mux.test", lambda: heard.append(hook))
        sys.audit("dap_mux.test")
        assert heard
    else:
        sys.addaudithook(hear)
    sys.setswitchinterval(1e-6)
    set_trace = _Patient(sys.settrace) if manner == "patient" else sys.settrace
    threads = [threading.Thread(target=work, args=(set_trace, int(times))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(*refused)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
