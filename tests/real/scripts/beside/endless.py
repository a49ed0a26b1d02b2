"""Counts until it is told to stop: something to pause."""

from __future__ import annotations

import time

stop = False
count = 0
while not stop:
    count += 1  # count
    time.sleep(0.01)
print("stopped")
