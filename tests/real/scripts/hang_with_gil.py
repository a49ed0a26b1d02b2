"""Rank 2 holds the GIL in one C call until the file named first exists; the others count."""

from __future__ import annotations

import ctypes
import os
import sys
import time

done = sys.argv[1]
if os.environ["RANK"] == "2":
    # What the call itself starts says so: until then this rank's debugger could still answer.
    waiter = f"echo hangs; until [ -e '{done}' ]; do sleep 0.05; done"
    ctypes.PyDLL(None).system(waiter.encode())
count = 0
while not os.access(done, os.F_OK):
    count += 1  # count
    time.sleep(0.005)
print("counted")
