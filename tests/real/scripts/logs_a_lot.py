"""Counts to the number named second, 1,500 a second, and runs until the file named first exists."""

from __future__ import annotations

import os
import sys
import time

done, total = sys.argv[1], int(sys.argv[2])
begun = time.monotonic()
for number in range(total):
    time.sleep(max(0.0, begun + number / 1500 - time.monotonic()))  # says
while not os.access(done, os.F_OK):
    time.sleep(0.005)
