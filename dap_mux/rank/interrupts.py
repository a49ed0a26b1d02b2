"""Ctrl-C while a rank is being started: it ends the process, as it would without us."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


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
