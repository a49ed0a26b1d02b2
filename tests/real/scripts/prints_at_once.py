"""Prints as many lines as are named second, without a pause, until the file named first exists."""

from __future__ import annotations

import os
import sys
import time

done, total = sys.argv[1], int(sys.argv[2])
for number in range(total):
    print(f"line {number} {'.' * 1000}")
printed = True
while not os.access(done, os.F_OK):
    time.sleep(0.005)  # printed
