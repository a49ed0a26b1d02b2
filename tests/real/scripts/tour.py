"""A bit of everything that a debugger is asked about; each rank with values of its own."""

from __future__ import annotations

import linecache
import os
import sys

rank = int(os.environ["RANK"])
MADE_UP = "first = rank\nsecond = first + 1\n"


def area(width: int, height: int) -> int:
    product = width * height  # product
    return product  # noqa: RET504  (a line to stop at)


def deep(levels: int) -> int:
    if levels:
        return deep(levels - 1)
    return levels  # bottom


def twice(number: int) -> int:
    return number * 2  # twice


def risky(number: int) -> float:
    return 10 / number  # risky


def main() -> None:
    total = 0
    for turn in range(8):
        total += rank * 100 + turn  # turn
    values = {"rank": rank, "squares": [n * n for n in range(5)]}
    size = area(rank + 1, 3)  # call
    size += len(values)  # after
    both = area(twice(1), twice(rank))  # nested
    deep(30)
    try:
        risky(0)
    except ZeroDivisionError:
        both += 1  # caught
    linecache.cache["<made up>"] = (len(MADE_UP), None, MADE_UP.splitlines(True), "<made up>")
    exec(compile(MADE_UP, "<made up>", "exec"), {"rank": rank})  # made-up
    print("size", size, "both", both)  # print
    if rank == 2 and "fail" in sys.argv:
        raise ValueError("rank two had enough")  # fail


main()
