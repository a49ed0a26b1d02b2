"""How many rooms dap-mux has, and arrows between them: neither grows without a decision.

A room is a folder with modules of its own, all of `engine` one, and so is each loose module of the
package. An arrow is a pair of rooms with an import, also one in a function or by `import_module`.
Floors are the longest chain of arrows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[3] / "dap_mux"
FACES: Final = ("__init__.py", "__main__.py")  # of the package: for `import` and for `python -m`
MODULES: Final = {
    path.relative_to(PACKAGE).with_suffix("").parts: path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.parent != PACKAGE or path.name not in FACES
}


def imported(path: Path) -> Iterator[str]:
    """Every name that a file imports, dotted."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=module, names=names):
                yield from (f"{module}.{each.name}" for each in names)
            case ast.Call(func=called, args=[ast.Constant(value=str(name)), *_]):
                if ast.unparse(called).endswith("import_module"):
                    yield name


def room(*name: str) -> str:
    """The room of the module that a name is, or is in; "" where there is none."""
    while name and name not in MODULES and (*name, "__init__") not in MODULES:
        name = name[:-1]
    folder = name[:-1] if name in MODULES and len(name) > 1 else name
    return "engine" if folder[:1] == ("engine",) else "/".join(folder)


@cache
def rooms() -> dict[str, set[str]]:
    """Each room, with the others that it imports."""
    found: dict[str, set[str]] = {room(*name): set() for name in MODULES if name[-1] != "__init__"}
    for name, path in MODULES.items():
        for other in imported(path):
            package, *rest = other.split(".")
            there = room(*rest) if package == "dap_mux" else ""
            found.setdefault(room(*name), set()).update({there} - {"", room(*name)})
    return found


@cache
def below(start: str) -> frozenset[str]:
    """The rooms that this one imports, and those that they do."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        new = rooms()[todo.pop()] - seen
        seen |= new
        todo += new
    return frozenset(seen)


@cache
def floor(of: str) -> int:
    """How many rooms stand on each other, from this one down; a circle is one floor."""
    return 1 + max((floor(each) for each in below(of) if of not in below(each)), default=0)


def test_there_are_no_more_rooms_floors_and_arrows_than_there_were() -> None:
    assert len(rooms()) <= 37, sorted(rooms())
    assert max(map(floor, rooms())) <= 9
    assert sum(map(len, rooms().values())) <= 142, rooms()


def test_only_what_runs_in_a_rank_imports_itself_in_a_circle() -> None:
    """By name: `rank.launched` loads the part of a framework that starts ranks."""
    assert {each for each in rooms() if each in below(each)} <= {"frameworks", "rank"}
