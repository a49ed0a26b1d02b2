"""A thread that enters user code when a line comes through a named pipe, and not before."""

import os
import sys
import threading
from functools import partial


def handle(line: str) -> str:
    text = line.strip()
    return text.upper()


def main() -> None:
    # Opened for both, so that it neither waits for a writer nor ends with one.
    with open(os.open(sys.argv[1], os.O_RDWR)) as pipe:  # noqa: PTH123
        lines = map(handle, pipe)
        thread = threading.Thread(target=partial(next, lines), name="late")
        thread.start()
        print("ready")  # ready
        thread.join()


main()
