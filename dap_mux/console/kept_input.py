"""Keeps what the user types while a command runs, so that Ctrl-C does not drop it.

By itself a terminal drops what it has not delivered yet when Ctrl-C sends its signal.
"""

from __future__ import annotations

import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

LOCAL_FLAGS: Final = 3
"""The place of the local flags among a terminal's attributes."""


@contextmanager
def kept_on_interrupt(descriptor: int) -> Iterator[None]:
    """Keep a terminal's input on Ctrl-C within the block; no effect on what is no terminal."""
    try:
        flags = termios.tcgetattr(descriptor)[LOCAL_FLAGS]
    except termios.error:
        yield
        return
    _set(descriptor, termios.NOFLSH)
    try:
        yield
    finally:
        _set(descriptor, flags & termios.NOFLSH)


def _set(descriptor: int, kept: int) -> None:
    """Change nothing else: meanwhile others may have changed the rest."""
    with suppress(termios.error):  # the terminal is gone
        attributes = termios.tcgetattr(descriptor)
        attributes[LOCAL_FLAGS] = attributes[LOCAL_FLAGS] & ~termios.NOFLSH | kept
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
