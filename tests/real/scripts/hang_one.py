"""Rank 2 hangs in one C call until the file named first exists; the others count meanwhile.

With a second argument the call holds the GIL.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time

done, *with_gil = sys.argv[1:]
if os.environ["RANK"] == "2":
    # The call itself prints it: until then this rank's debugger could still answer.
    waiter = f"echo hangs; until [ -e '{done}' ]; do sleep 0.05; done"
    if with_gil:
        ctypes.PyDLL(None).system(waiter.encode())
    else:
        child = subprocess.Popen(["sh", "-c", waiter])
        os.waitpid(child.pid, 0)  # hang
        child.returncode = 0
count = 0
while not os.access(done, os.F_OK):
    count += 1  # count
    time.sleep(0.005)
print("counted")
