"""Rank 2 holds the GIL in one C call until the file named first exists; the others count."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time

done = sys.argv[1]
if os.environ["RANK"] == "2":
    print("hangs", flush=True)
    child = subprocess.Popen(["sh", "-c", f"until [ -e '{done}' ]; do sleep 0.05; done"])
    ctypes.PyDLL(None).waitpid(child.pid, None, 0)  # hang
    child.returncode = 0
count = 0
while not os.access(done, os.F_OK):
    count += 1  # count
    time.sleep(0.005)
print("counted")
