"""Exceptions that are caught, chained, raised in a library, and one that is not caught."""

from __future__ import annotations

import json
import sys


class JobError(Exception):
    """An exception of the program's own."""


def caught() -> None:
    try:
        raise KeyError("missing")  # caught
    except KeyError:
        print("caught")


def in_library() -> None:
    try:
        json.loads("{")  # library
    except json.JSONDecodeError as error:
        print("bad JSON at", error.pos)


def chained() -> None:
    items: list[int] = []
    try:
        print(items[1])  # cause
    except IndexError as error:
        raise JobError("the job is over", 7) from error  # chained


def main() -> None:
    caught()
    in_library()
    if len(sys.argv) > 1:
        sys.exit(int(sys.argv[1]))
    chained()


main()
