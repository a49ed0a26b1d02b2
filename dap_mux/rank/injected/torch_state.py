"""What torch knows of a rank: its device meshes, its rank, and what of the code it has compiled.

It imports nothing of torch, and starts nothing: what torch has not loaded there is not asked.
"""

from __future__ import annotations

import ast
import dis
import gc
import json
import linecache
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterator
    from types import CodeType

MOST_ENTRIES = 64  # compiled functions whose inlined ones are looked for
PLACE = re.compile(r"#\s(\S+):(\d+) in (\w+)")  # in torch's words about a guard


def look(places: list[tuple[str, int]], wants_mesh: bool) -> str:
    """Return JSON of what has come to be: `torch`: whether it is there at all."""
    found: dict[str, Any] = {"torch": "torch" in sys.modules, "meshes": [], "compiled": []}
    if "torch.distributed.distributed_c10d" in sys.modules and wants_mesh:
        found["meshes"] = meshes_here()
    with suppress(Exception):  # private parts of torch: without them it is not known
        found["compiled"] = compiled(places)
    return json.dumps(found)


def meshes() -> str:
    """Return JSON of all meshes."""
    return json.dumps(meshes_here())


def meshes_here() -> list[Any]:
    """Return [[dimension names, sizes, this rank's place or null], ...]; torch's rank is one."""
    library: Any = sys.modules.get("torch.distributed.device_mesh")
    kind = getattr(library, "DeviceMesh", None)
    found = []
    # Never `gc.get_objects()`: it holds tuples that the program's threads are still making, and
    # making them then fails there with a SystemError.
    for each in gc.get_referrers(kind) if kind is not None else ():
        if type(each) is kind and each.mesh_dim_names:
            place = each.get_coordinate()
            sizes = list(map(int, each.mesh.shape))
            found.append([list(each.mesh_dim_names), sizes, place and list(map(int, place))])
    world: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if world is not None and world.is_initialized():
        found.append([["torch_rank"], [world.get_world_size()], [world.get_rank()]])
    return found


def compiled(places: list[tuple[str, int]]) -> list[Any]:
    """Return [path, line, function, the function it is inlined into or ""] of compiled places."""
    frames: Any = sys.modules.get("torch._dynamo.convert_frame")
    caches: Any = sys.modules.get("torch._C._dynamo.eval_frame")
    if frames is None or caches is None or not places:
        return []
    entries_of = caches._debug_get_cache_entry_list  # noqa: SLF001  (there is no public one)
    cached = []
    for reference in list(frames.input_codes.seen):
        code = reference()
        entries = entries_of(code) if code is not None else ()
        if entries:
            cached.append((code, entries))
    found = []
    for path, line in places:
        direct = [code.co_name for code, _ in cached if covers(code, path, line)]
        if direct:
            found.append([path, line, direct[0], ""])
            continue
        function = function_at(path, line)
        root = inlined_into(function, path, cached) if function else ""
        if function and root:
            found.append([path, line, function[0], root])
    return found


def covers(code: CodeType, path: str, line: int) -> bool:
    """Whether a line of a file is of this code, or of what is defined in it."""
    if code.co_filename != path or line < code.co_firstlineno:
        return False
    return line <= max(lines_of(code), default=0)


def lines_of(code: CodeType) -> Iterator[int]:
    """All lines of a code object."""
    for _, line in dis.findlinestarts(code):
        yield line or 0
    for each in code.co_consts:
        if isinstance(each, type(code)):
            yield from lines_of(each)


def function_at(path: str, line: int) -> tuple[str, int, int] | None:
    """Return the innermost function around a line: its name, first and last line."""
    found = None
    for node in ast.walk(ast.parse("".join(linecache.getlines(path)))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            last = node.end_lineno or node.lineno
            inner = found is None or node.lineno > found[1]
            if node.lineno <= line <= last and inner:
                found = (node.name, node.lineno, last)
    return found


def inlined_into(function: tuple[str, int, int], path: str, cached: list[Any]) -> str:
    """Return the compiled function that a guard taken in this one belongs to; "" for none.

    A guard names the place where it was taken, by the end of its path.
    """
    name, first, last = function
    for code, entries in cached[:MOST_ENTRIES]:
        for entry in entries:
            for file, line, where in PLACE.findall(str(entry.guard_manager)):
                if where == name and first <= int(line) <= last and path.endswith(file):
                    return str(code.co_name)
    return ""
