"""What a terminal does with typed text on Ctrl-C, on a real pseudo terminal."""

from __future__ import annotations

import os
import pty
import termios
from collections.abc import Iterator

import pytest

from dap_mux.frontends.console.terminal import LOCAL_FLAGS, kept_on_interrupt


@pytest.fixture
def terminal() -> Iterator[int]:
    """The end of a terminal at which programs read."""
    other, own = pty.openpty()
    yield own
    os.close(own)
    os.close(other)


def flags(terminal: int) -> int:
    local: int = termios.tcgetattr(terminal)[LOCAL_FLAGS]
    return local


def test_input_is_kept_within_the_block_alone(terminal: int) -> None:
    before = flags(terminal)
    with kept_on_interrupt(terminal):
        assert flags(terminal) == before | termios.NOFLSH
    assert flags(terminal) == before


def test_what_others_change_meanwhile_stays(terminal: int) -> None:
    with kept_on_interrupt(terminal):
        attributes = termios.tcgetattr(terminal)
        attributes[LOCAL_FLAGS] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    assert not flags(terminal) & termios.ECHO
    assert not flags(terminal) & termios.NOFLSH


def test_a_terminal_that_keeps_it_already_goes_on_to(terminal: int) -> None:
    with kept_on_interrupt(terminal), kept_on_interrupt(terminal):
        pass
    assert not flags(terminal) & termios.NOFLSH
    attributes = termios.tcgetattr(terminal)
    attributes[LOCAL_FLAGS] |= termios.NOFLSH
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    with kept_on_interrupt(terminal):
        pass
    assert flags(terminal) & termios.NOFLSH


def test_what_is_no_terminal_is_left_alone() -> None:
    reading, writing = os.pipe()
    with kept_on_interrupt(reading):
        os.write(writing, b"list\n")
    assert os.read(reading, 5) == b"list\n"
    os.close(reading)
    os.close(writing)
    with kept_on_interrupt(reading):  # nor is one that is closed
        pass
