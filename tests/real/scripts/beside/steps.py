"""Calls within calls, lines that can be jumped over, and a library to step into."""

from __future__ import annotations

import textwrap


def inner(number: int) -> int:
    result = number
    result += 1  # inner
    return result


def outer(number: int) -> int:
    value = inner(inner(number))  # outer
    return value * 2


def jumps() -> int:
    count = 1  # jump start
    count += 10
    count += 100  # jump end
    return count


def main() -> None:
    result = outer(1)  # first
    print("result", result)
    print(textwrap.dedent("  text"))  # library
    print("count", jumps())
    squares = [number * number for number in range(3)]  # comprehension
    print("squares", squares)


main()
