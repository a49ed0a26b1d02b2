"""The session that started this job, and whether it has gone; Ctrl-C while a rank starts."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

STARTER = "DAP_MUX_STARTER"
UNKNOWN = "unknown"
_ENDS = "ends"
_START = 19  # among the fields of proc(5) stat from the third on
_DEAD = "ZXx"


def starter_variables(*, ends_with_us: bool) -> dict[str, str]:
    """Return the variables that tell ranks of us; `ends_with_us`: they end once we are gone."""
    return {STARTER: f"{this_process()} {_ENDS}" if ends_with_us else this_process()}


def ends_with_starter(environ: Mapping[str, str]) -> bool:
    """Whether a rank that still waits for its first debugger ends with its starter."""
    return environ.get(STARTER, "").endswith(_ENDS)


def this_process() -> str:
    """Describe the calling process as STARTER does, as far as the system tells."""
    try:
        return f"{_machine()} {os.getpid()} {_fields(os.getpid())[_START]}"
    except (OSError, IndexError):
        return UNKNOWN


# No rank waits for the first debugger of a session that is gone, killed, say: where an editor has
# launched the job its ranks end then, and those of `dap-mux run` run on. They are told the
# session's process in a variable, and look at it while they wait. Later they do not: a program that
# has begun runs on without its session.
def starter_is_gone(environ: Mapping[str, str]) -> bool:
    """Whether the process that STARTER names has ended; False where that cannot be seen."""
    words = environ.get(STARTER, "").split()
    try:
        machine, pid, start = " ".join(words[:2]), int(words[2]), words[3]
        if sys.platform == "win32" or machine != _machine():
            return False
        os.kill(pid, 0)
        fields = _fields(pid)
        return fields[0] in _DEAD or fields[_START] != start
    except ProcessLookupError:
        return True
    except (OSError, ValueError, IndexError):
        return False


def _machine() -> str:
    """The boot of this machine, and the namespace of our pid."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  (Path has it since Python 3.9)
    return f"{boot} {space}"


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
