"""A loop that breakpoints of every kind can tell apart."""

from __future__ import annotations


def loop(count: int) -> int:
    total = 0
    for number in range(count):
        total += number  # body
    return total  # after


def main() -> None:
    print("sum", loop(10))
    print("again", loop(3))  # again


main()
