"""`make demo` is the main job, as a new user sees it: run it and read what it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.real
@pytest.mark.timeout(120)
def test_the_demo_finds_the_rank_that_differs_and_exits_0() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    told = done.stdout
    assert done.returncode == 0, told + done.stderr
    assert re.search(r"^  2     stopped  breakpoint  train", told, re.MULTILINE)
    assert re.search(r"batch\.unit  ⚠ \{2\}: 'mm' \| \{0-1,3\}: 'm'", told)
    assert len(re.findall(r"stepped over: all 4 ranks stand on line \d+$", told, re.MULTILINE)) == 2
    assert "ranks 0-3 exited with 0" in told
    assert "Start it again" not in told  # that is asked on a terminal only
