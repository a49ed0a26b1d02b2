"""`python -m tests.bench [--page] [NAME…]`: times beside their limits; 1 when one is broken.

`--page` writes them to docs/performance.md as well: all, or the sections of those that are named.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.bench import page
from tests.bench.figures import Figure
from tests.bench.page import BENCHMARKS


def main(words: Sequence[str]) -> int:
    """Run the named benchmarks, all without a name."""
    names = [word for word in words if word != "--page"]
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
        return 2
    results: dict[str, list[Figure]] = {}
    for name in names or BENCHMARKS:
        for figure in page.scene(name)():
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
