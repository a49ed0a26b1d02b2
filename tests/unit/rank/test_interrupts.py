"""Ctrl-C while a rank starts: nobody between it and the process can swallow it."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Final

import pytest

SWALLOWED: Final = """
import signal
from contextlib import suppress
from dap_mux.rank.starter import dying_of_ctrl_c

def interrupted():
    with suppress(BaseException):  # as debugpy does in places
        signal.raise_signal(signal.SIGINT)

{before}
with dying_of_ctrl_c({words}):
    interrupted()
    print("inside", flush=True)
with suppress(KeyboardInterrupt):
    signal.raise_signal(signal.SIGINT)
    print("behind", flush=True)
"""


def outcome(words: str = "", before: str = "") -> tuple[int, str]:
    """How the process ends, and what it says."""
    script = SWALLOWED.format(words=words, before=before)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "said"), [("", ""), ("lambda: print('bye', flush=True)", "bye\n")]
)
def test_the_process_dies_of_it_after_its_last_words(words: str, said: str) -> None:
    assert outcome(words) == (-signal.SIGINT, said)


def test_last_words_that_fail_change_nothing() -> None:
    assert outcome("lambda: 1 / 0") == (-signal.SIGINT, "")


def test_who_ignores_it_goes_on_doing_so() -> None:
    ignores = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    assert outcome(before=ignores) == (0, "inside\nbehind\n")


def test_behind_it_everything_is_as_before() -> None:
    """The one inside is not sent: the one behind is Python's own KeyboardInterrupt again."""
    assert outcome(before="interrupted = lambda: None") == (0, "inside\n")
