"""How many rooms dap-mux has, and arrows between them: neither grows without a decision.

A room is the outermost folder with modules of its own, or a loose module; its parts are what is in
it. An arrow is a pair with an import, lazy or by name too. Floors are the longest chain of arrows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from operator import le
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[3] / "dap_mux"
PATHS: Final = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
ROOMS: Final = {".".join(path.parent.parts or [path.stem]) for path in PATHS if path.stem[0] != "_"}


def names(path: Path) -> Iterator[str]:
    """The dotted name of a module, and all that it imports."""
    yield ".".join(("dap_mux", *path.with_suffix("").parts))
    for node in ast.walk(ast.parse((PACKAGE / path).read_text("utf-8"))):
        match node:
            case ast.Import() | ast.ImportFrom():
                start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                yield from (start + each.name for each in node.names)
            case ast.Call(func=called, args=[ast.Constant(value=str(name)), *_]):
                yield name if ast.unparse(called).endswith("import_module") else ""


def place(name: str, inside: str) -> str:
    """The room that a name is in, or the part of the room `inside`; "" where it is in none."""
    package, *rest = name.split(".")
    starts = [".".join(rest[:end]) for end in range(1, len(rest) + 1) if package == "dap_mux"]
    if inside:
        return starts[1] if len(starts) > 1 and rest[0] == inside else ""
    return next((start for start in starts if start in ROOMS), "")


def measured(files: list[list[str]], inside: str = "") -> tuple[int, int, int]:
    """How many rooms, floors and arrows; or parts of a room. Raises CycleError for a circle."""
    found: dict[str, set[str]] = {}
    for file in files:
        here, *others = (place(each, inside) for each in file)
        if here:
            found.setdefault(here, set()).update({*others} - {here, ""})
    height = {"": 0}
    for each in TopologicalSorter(found).static_order():
        height[each] = 1 + max((height[other] for other in found.get(each, ())), default=0)
    return len(found), max(height.values()), sum(map(len, found.values()))


def test_rooms_floors_and_arrows_are_few() -> None:
    files = [[*names(path)] for path in PATHS]
    house = measured(files)
    assert all(map(le, house, (16, 7, 47))), house
    inner = {each: measured(files, each) for each in {room.split(".")[0] for room in ROOMS}}
    assert inner["engine"][2] <= 100, inner
