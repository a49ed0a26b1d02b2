"""Counts until the file named first exists; forks a child, which only waits, for the second one."""

from __future__ import annotations

import os
import sys
import time

done, fork = sys.argv[1:]
count = 0
child = -1
while not os.access(done, os.F_OK):
    if child == 0:
        time.sleep(0.05)
        continue
    if child < 0 and os.access(fork, os.F_OK):
        child = os.fork()
        line = f"child {child}\n" if child else "forked\n"
        os.write(1, line.encode())  # at once: `print` writes the end of a line by itself
    count += 1  # count
    time.sleep(0.005)
