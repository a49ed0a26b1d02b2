"""A task raises, and its framework keeps the exception for whoever asks for the result."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def task(number: int) -> float:
    share = 1 / number  # raises
    return 2 * share


done = Path(sys.argv[1])
with ThreadPoolExecutor(1) as pool:
    while not done.exists():
        pool.submit(task, 0).exception()
