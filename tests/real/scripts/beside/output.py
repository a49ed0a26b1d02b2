"""Output to both streams, in pieces and in lines."""

from __future__ import annotations

import sys


def main() -> None:
    print("one")
    print("two", file=sys.stderr)
    print("in ", end="")
    print("pieces")
    print("ünïcode €")
    sys.stdout.write("x" * 3000 + "\n")
    print("last", end="", flush=True)  # last


main()
