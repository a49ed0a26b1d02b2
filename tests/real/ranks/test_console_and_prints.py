"""An expression of a debug console while its rank prints: the rank lives."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dap_mux.rank.injected import source_of

pytestmark = pytest.mark.real
# `print` is held in the middle of its call, while a console's expression ends in another thread.
PROGRAM = """\
import sys
import threading
import debugpy._vendored.force_pydevd
from _pydevd_bundle import pydevd_io

exec(sys.argv[1], own := {})
own["keep_redirectors"]()


class Held:
    def write(self, text):
        if text == "first":
            printing.set()
            over.wait()


def console():
    with pydevd_io.redirect_stream_to_pydb_io_messages_context():
        replaced.set()
        printing.wait()
    for _ in range(1000):
        others.append(bytearray(64))
    over.set()


others, usual = [], sys.stdout
sys.stdout = Held()
for _ in range(50):
    printing, replaced, over = threading.Event(), threading.Event(), threading.Event()
    thread = threading.Thread(target=console)
    thread.start()
    replaced.wait()
    print("first", "second")
    thread.join()
sys.stdout = usual
print("done")
"""


def run(source: str) -> subprocess.CompletedProcess[str]:
    """Run it with what `source` defines."""
    command = [sys.executable, "-c", PROGRAM, source]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_rank_that_prints_while_a_console_evaluates_lives_on() -> None:
    """Without our change it ends with a segmentation fault on CPython before 3.14."""
    ended = run(source_of("attach/pydevd_patches"))
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended
