"""Keep two shapes out of dap-mux: holes that a subclass must fill, and catches of our own defects.

`python tools/composition.py [ROOT]` prints one line for each and exits 1 when there is one. A part
that needs another takes it in its constructor, as a Protocol where the other stands above it. The
engine decodes messages where they come in, and `PeerFault` is raised there; what only a defect
raises is caught by one guard alone, which `Engine.receive` calls and nobody else.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ENGINE = "dap_mux/engine/"
GUARD = f"{ENGINE}messages/faults.py"
GUARDED = f"{ENGINE}engine.py"
DEFECTS = frozenset(
    "AttributeError BaseException Exception IndexError KeyError LookupError TypeError".split()
)


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
        guarded = name.startswith(ENGINE) and name != GUARD
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), name)):
            if isinstance(node, ast.Name) and node.id == "NotImplementedError":
                yield f"{name}:{node.lineno}: a hole: take the other part in the constructor"
            elif isinstance(node, ast.ImportFrom) and name != GUARDED and takes_guard(node):
                yield f"{name}:{node.lineno}: takes the guard: put the call off with `later`"
            elif isinstance(node, ast.Try) and guarded:
                yield from (f"{name}:{line}: {why}" for line, why in broad_catches(node))


def takes_guard(node: ast.ImportFrom) -> bool:
    """Whether this imports the guard, as a module or from it."""
    module = GUARD.removesuffix(".py").replace("/", ".")
    return node.module == module or any(f"{node.module}.{one.name}" == module for one in node.names)


def broad_catches(block: ast.Try) -> Iterator[tuple[int, str]]:
    """Catches of what a defect raises; around one expression, or to raise it again, they may be."""
    if len(block.body) == 1 and isinstance(block.body[0], ast.Assign | ast.Return):
        return
    for handler in block.handlers:
        names = ast.walk(handler.type) if handler.type else ()
        caught = {node.id for node in names if isinstance(node, ast.Name)} & DEFECTS
        bare = handler.type is None
        if (caught or bare) and not isinstance(handler.body[-1], ast.Raise):
            what = ", ".join(sorted(caught)) or "everything"
            yield handler.lineno, f"catches {what} around whole statements"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
