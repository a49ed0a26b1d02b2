"""Counts until the file named first exists."""

from __future__ import annotations

import os
import sys
import time

done = sys.argv[1]
count = 0
while not os.access(done, os.F_OK):  # no call into Python code: every pause lands here
    count += 1  # count
    time.sleep(0.005)
print("counted")
