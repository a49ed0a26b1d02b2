"""Comes to a line again and again; all ranks but the first only once a file is there.

Each keeps how often it has passed in a file of its own. Argument: a folder, with `late` and `done`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

RANK = int(os.environ["RANK"])
folder = Path(sys.argv[1])
beats = 0


def beat() -> None:
    global beats  # noqa: PLW0603 - it is looked at without a frame
    while True:
        beats += 1
        time.sleep(0.01)


threading.Thread(target=beat, daemon=True).start()
while RANK and not (folder / "late").exists():
    time.sleep(0.01)
passed = 0
while not (folder / "done").exists():
    passed += 1  # pass
    (folder / f"passed-{RANK}").write_text(str(passed), "utf-8")
    time.sleep(0.01)
