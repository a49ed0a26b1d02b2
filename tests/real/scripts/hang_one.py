"""Rank 2 hangs in one C call until the file named first exists; the others count meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time

done = sys.argv[1]
if os.environ["RANK"] == "2":
    waiter = f"until [ -e '{done}' ]; do sleep 0.05; done"
    child = subprocess.Popen(["sh", "-c", waiter])
    os.waitpid(child.pid, 0)  # hang
    child.returncode = 0
count = 0
while not os.access(done, os.F_OK):
    count += 1  # count
    time.sleep(0.005)
print("counted")
