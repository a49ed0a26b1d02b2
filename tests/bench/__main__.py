"""`python -m tests.bench [NAME…]`: times beside their limits; exit code 1 when one is broken."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Final

BENCHMARKS: Final = (
    "evaluate",
    "cost",
    "passthrough",
    "attach32",
    "default",
    "cast",
    "monarch",
    "vscode",
    "language_server",
    "further",
    "growth",
    "startup",
)


def main(names: Sequence[str]) -> int:
    """Run the named benchmarks, all without a name."""
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
        return 2
    broken = []
    for name in names or BENCHMARKS:
        for figure in importlib.import_module(f"tests.bench.{name}").run():
            print(figure.line(), flush=True)
            broken += [figure.name] if figure.held is False else []
    if broken:
        print(f"over their bounds: {'; '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
