"""One process with two threads, some output, an error that is caught and one that is not."""

from __future__ import annotations

import sys
import threading


def work(number: int) -> int:
    size = number * 3  # work
    return size + 1


def main() -> None:
    idle = threading.Event()
    helper = threading.Thread(target=idle.wait, name="helper", daemon=True)
    helper.start()
    print("started")
    values = {"a": [1, 2], "b": None}
    result = work(14)  # call
    print("result", result, file=sys.stderr)
    try:
        values["missing"]
    except KeyError:
        print("caught")
    idle.set()
    helper.join()
    raise ValueError("the end")  # fail


main()
