"""The session that started this job, and whether it has gone; Ctrl-C while a rank starts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dap_mux.rank.injected.attach.process_identity import START_TIME, process_identity

STARTER = "DAP_MUX_STARTER"
UNKNOWN = "unknown"
_ENDS = "ends"
_DEAD = "ZXx"


def starter_variables(*, ends_with_us: bool) -> dict[str, str]:
    """Return the variables that tell ranks of us; `ends_with_us`: they end once we are gone."""
    us = process_identity() or UNKNOWN
    return {STARTER: f"{us} {_ENDS}" if ends_with_us else us}


def ends_with_starter(environ: Mapping[str, str]) -> bool:
    """Whether a rank that still waits for its first debugger ends with its starter."""
    return environ.get(STARTER, "").endswith(_ENDS)


# No rank waits for the first debugger of a session that is gone, killed, say: where an editor has
# launched the job its ranks end then, and those of `dap-mux run` run on. They are told the
# session's process in a variable, and look at it while they wait. Later they do not: a program that
# has begun runs on without its session.
def starter_is_gone(environ: Mapping[str, str]) -> bool:
    """Whether the process that STARTER names has ended; False where that cannot be seen."""
    words = environ.get(STARTER, "").split()
    try:
        pid, start = int(words[2]), words[3]
        if words[:2] != process_identity().split()[:2]:  # of another machine, or none of Linux
            return False
        os.kill(pid, 0)
        fields = _fields(pid)
        return fields[0] in _DEAD or fields[START_TIME] != start
    except ProcessLookupError:
        return True
    except (OSError, ValueError, IndexError):
        return False


def _fields(pid: int) -> list[str]:
    stat = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    return stat.rpartition(")")[2].split()


# Ctrl-C while a rank is being started: it ends the process, as it would without us.


@contextmanager
def dying_of_ctrl_c(last_words: Callable[[], None] | None = None) -> Iterator[None]:
    """Die of SIGINT at once, after `last_words`; where the process ignores it, so do we.

    A KeyboardInterrupt can be raised anywhere: debugpy swallows it in some places, and would go on
    waiting; and while Python starts it is taken for a crash of Python's own.
    """
    ours = threading.current_thread() is threading.main_thread()  # nobody else may set handlers
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def die(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if last_words:
            with suppress(Exception):  # the stream may be in the middle of something
                last_words()
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, die if last_words else signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
