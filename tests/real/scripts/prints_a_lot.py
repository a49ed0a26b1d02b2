"""Prints as many MB as are asked for second once the file named third exists; then it counts.

Lines of 100 bytes, many in one write, until the file named first exists.
"""

from __future__ import annotations

import os
import sys
import time

done, megabytes, go = sys.argv[1], int(sys.argv[2]), sys.argv[3]
line = f"rank {os.environ['RANK']} ".ljust(99, ".") + "\n"
while not os.access(go, os.F_OK):
    time.sleep(0.005)
for _ in range(megabytes * 20):
    sys.stdout.write(line * 500)
print(f"rank {os.environ['RANK']}: all is printed")  # each its own: equal lines are folded
count = 0
while not os.access(done, os.F_OK):
    count += 1  # count
    time.sleep(0.005)
