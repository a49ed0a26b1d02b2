"""All ranks but rank 0 come by one line; then all run on until the file named first exists."""

from __future__ import annotations

import os
import sys
import time

rank = int(os.environ["RANK"])
if rank:
    place = rank * 10  # here
    place += 1
while not os.access(sys.argv[1], os.F_OK):
    time.sleep(0.005)
print("rank", rank)
