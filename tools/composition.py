"""Keep holes out of dap-mux: methods that a subclass must fill in.

`python tools/composition.py [ROOT]` prints one line for each and exits 1 when there is one. A part
that needs another takes it in its constructor, as a Protocol where the other stands above it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Print the violations below ROOT (this repository by default); 1 when there is any."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(violations(root))
    for line in found:
        print(line)
    return 1 if found else 0


def violations(root: Path) -> Iterator[str]:
    """Every violation in the product, as `file:line: sentence`."""
    for path in sorted((root / "dap_mux").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), name)):
            if isinstance(node, ast.Name) and node.id == "NotImplementedError":
                yield f"{name}:{node.lineno}: a hole: take the other part in the constructor"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
