"""`python -m tests.bench [--page] [NAME…]`: times beside their limits; 1 when one is broken.

`--page` writes them to docs/performance.md as well: all, or the sections of those that are named.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Final

from tests.bench import page
from tests.bench.figures import Figure

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
    "differ",
    "stacks",
    "stacks_view",
)


def main(words: Sequence[str]) -> int:
    """Run the named benchmarks, all without a name."""
    names = [word for word in words if word != "--page"]
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
        return 2
    results: dict[str, list[Figure]] = {}
    for name in names or BENCHMARKS:
        for figure in importlib.import_module(f"tests.bench.{name}").run():
            print(figure.line(), flush=True)
            results.setdefault(name, []).append(figure)
    if "--page" in words:
        page.write(results, whole=not names)
    broken = [one.name for figures in results.values() for one in figures if one.held is False]
    if broken:
        print(f"over their bounds: {'; '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
