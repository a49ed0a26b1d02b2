"""What a replay cannot repeat is heard where the program does it, and nothing of libraries'."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

HEARS: Final = """
import sys
import threading
from dap_mux.rank.take.unrepeated import Unrepeated
heard = Unrepeated()
heard.begin()
import datetime, sched, time
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
class Timer:
    clock = time.time  # a function of C becomes no method
class Day(datetime.datetime):
    pass
def function():
    {}
function()
print("".join(f"; {{each}}" for each in heard.known()))
for step in (1, 2):
    heard.called(step)
    print("".join(f"; {{each}}" for each in heard.known()))
"""
CLOCK: Final = "; it has read the clock at PLACE"
THREADS: Final = "; threads that it started at PLACE may run in another order"


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("perf_counter()", CLOCK),
        ("assert Timer().clock() > 0", CLOCK),
        ("assert type(Day.now(datetime.timezone.utc)) is Day", CLOCK),
        ("assert datetime.datetime.now(tz=None)", CLOCK),
        ("sched.scheduler(time.monotonic).run()", ""),
        ("threading.Thread(target=lambda: None).start()", THREADS),
        ("ThreadPoolExecutor(1).submit(print, end='')", THREADS),
        ("threading.Thread(target=print, kwargs={'end': ''}).start()", ""),
    ],
)
def test_the_clock_and_threads_are_heard(tmp_path: Path, act: str, said: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEARS.format(act), "utf-8")
    line = HEARS.format(act).splitlines().index(f"    {act}") + 1
    out = subprocess.run(
        [sys.executable, "-W", "ignore", script],
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    there = said.replace("PLACE", f"{script}:{line} function")
    assert out.splitlines() == [there, there, "" if said == CLOCK else there]
