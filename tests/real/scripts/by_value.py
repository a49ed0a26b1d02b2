"""Runs functions that come as bytes, as pickled by value: their file may lie nowhere here."""

import marshal
import sys
import time
from pathlib import Path
from typing import Any

code, done = map(Path, sys.argv[1:])
names: dict[str, Any] = {"__name__": "__main__"}
if code.exists():
    exec(marshal.loads(code.read_bytes()), names)
while not done.exists():
    if code.exists() and "task" not in names:
        exec(marshal.loads(code.read_bytes()), names)
    print("task" in names and names["task"](3))
    time.sleep(0.01)
