"""Keep the arrows between the parts of dap-mux: who may import whom, and who does no I/O.

`python tools/layers.py [ROOT]` prints one line for each violation and exits 1 when there is one.
The tables below are the rule; a new part of the package needs a row, or its files are reported.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "dap_mux"
ENGINE = f"{PACKAGE}.engine"


@dataclass(frozen=True)
class Layer:
    """What one part may import beside the standard library: our parts, and distributions.

    `pure`: no socket, clock, file, task or await, so that every race can be a scripted test.
    `bare`: nothing at all of ours, not even the package root.
    """

    ours: tuple[str, ...]
    theirs: tuple[str, ...] = ()
    pure: bool = False
    bare: bool = False


PURE_PARTS = (
    "addresses",
    "backoff",
    "errors",
    "insight",
    "lookups",
    "pathmap",
    "printable",
    "protocol",
    "rank_rows",
    "rank_sets",
    "rank_values",
    "suggestions",
)
MIDDLE = (*PURE_PARTS, "engine")

# A target names a part, or one module of it when the rest is out of bounds.
LAYERS: dict[str, Layer] = {
    "addresses": Layer(ours=(), pure=True),
    "backoff": Layer(ours=(), pure=True),
    "errors": Layer(ours=(), pure=True),
    "lookups": Layer(ours=(), pure=True),
    "printable": Layer(ours=(), pure=True),
    "protocol": Layer(ours=("errors",), theirs=("msgspec",), pure=True),
    "suggestions": Layer(ours=(), pure=True),
    "rank_sets": Layer(ours=("errors", "suggestions"), theirs=("msgspec",), pure=True),
    "rank_rows": Layer(ours=("rank_sets",), pure=True),
    "rank_values": Layer(ours=(), pure=True),
    "pathmap": Layer(ours=("errors", "rank_sets"), theirs=("msgspec",), pure=True),
    "insight": Layer(
        ours=("errors", "printable", "protocol", "rank_sets"), theirs=("msgspec",), pure=True
    ),
    # its source is sent to ranks that may have no dap-mux
    "injected": Layer(ours=(), bare=True),
    "engine": Layer(ours=PURE_PARTS, theirs=("msgspec",), pure=True),
    # debugpy and what its wheel brings: the agent adjusts its inner parts
    "rank": Layer(
        ours=("injected",),
        theirs=("_pydev_bundle", "_pydevd_bundle", "debugpy", "pydevd"),
        bare=True,
    ),
    # runs in the job's own Python, with the engine named in each module's name
    "frameworks": Layer(
        ours=("injected", "rank"),
        theirs=("cloudpickle", "debugpy", "distributed", "monarch", "ray"),
        bare=True,
    ),
    # by name, as it needs the job's Monarch
    "monarch": Layer(ours=(), bare=True),
    "shell": Layer(ours=(*MIDDLE, "procfs"), theirs=("anyio", "msgspec", "uvloop")),
    # what it has to say to ranks of another Python, in their own words
    "cluster": Layer(
        ours=(
            *MIDDLE,
            "frameworks",
            "injected",
            "open_files",
            "private_files",
            "procfs",
            "python_command",
            "temporary_folders",
            "tunnel",
            "rank.detection",
            "rank.environ",
            "rank.launched",
            "rank.inject",
            "rank.ready",
            "rank.starter",
            "user_files",
        ),
        theirs=("anyio", "msgspec"),
    ),
    "tunnel": Layer(ours=(*MIDDLE, "open_files"), theirs=("anyio",)),
    "client": Layer(ours=("errors", "protocol", "rank_sets"), theirs=("anyio", "msgspec")),
    # tomllib joined the standard library in Python 3.11
    "config": Layer(
        ours=("errors", "rank_sets", "suggestions", "user_files"),
        theirs=("msgspec", "tomli", "tomllib"),
    ),
    "open_files": Layer(ours=()),
    "procfs": Layer(ours=()),
    "python_command": Layer(ours=()),
    "temporary_folders": Layer(ours=("procfs",)),
    "user_files": Layer(ours=()),
    "private_files": Layer(ours=("errors", "user_files")),
    "session_files": Layer(
        ours=("errors", "private_files", "procfs", "user_files"), theirs=("msgspec",)
    ),
    "session": Layer(
        ours=(
            *MIDDLE,
            "client",
            "cluster",
            "config",
            "injected",
            "open_files",
            "private_files",
            "procfs",
            "session_files",
            "shell",
            "temporary_folders",
            "tunnel",
            "user_files",
        ),
        theirs=("anyio", "msgspec", "uvloop"),
    ),
    # a client like any editor: it never looks behind the protocol
    "console": Layer(
        ours=(
            *("client", "errors", "printable", "rank_rows", "rank_sets", "rank_values"),
            *("suggestions", "user_files"),
        ),
        theirs=("prompt_toolkit", "rich"),
    ),
    # neither does this; the way into a session is handed to it
    "lsp": Layer(
        ours=(
            *("backoff", "client", "errors", "lookups", "printable", "rank_rows", "rank_sets"),
            *("rank_values", "session_files", "suggestions", "user_files"),
        ),
        theirs=("lsprotocol", "pygls", "tree_sitter", "tree_sitter_json"),
    ),
    # a client too; what it knows of files, it has from who knows them for the engine
    "doctor": Layer(
        ours=(
            *PURE_PARTS,
            "client",
            "cluster.endpoints",
            "cluster.injection",
            "cluster.native_debuggers",
            "cluster.python_process",
            "cluster.records",
            "cluster.slurm_commands",
            "engine.source_files.comparison",
            "engine.source_files.probe",
            "engine.evaluate.timeout_probe",
            "engine.evaluate.torch_probe",
            "injected",
            "procfs",
            "python_command",
            "session_files",
            "user_files",
        ),
        theirs=("msgspec",),
    ),
    "cli": Layer(
        ours=(
            *PURE_PARTS,
            "client",
            "cluster.endpoints",
            "cluster.records",
            "config",
            "console",
            "doctor",
            "lsp",
            "private_files",
            "session",
            "session_files",
            "shell.auth",
            *("shell.liveness", "shell.sockets", "shell.timers"),
            "user_files",
        ),
        theirs=("anyio", "msgspec", "shtab", "uvloop"),
    ),
    "__main__": Layer(ours=("cli",)),
    # `import dap_mux` is for the debugged program: it loads the in-rank agent, and only when asked.
    "__init__": Layer(ours=("rank",)),
}

# The rooms of the engine, from the top down: a room may import itself and those below it. A name is
# that of a folder or of a module.
ENGINE_ROOMS = (
    "engine",
    "routes",
    "on_demand",
    "events",
    "commands.debug_console",
    "commands.requests",
    "commands.pdb",
    "evaluate",
    "clients",
    "stops",
    "ranks",
    "breakpoints",
    "source_files",
    "messages",
    "state",
    "python_syntax",
    "injected_sources",
    "inputs",
    "outputs",
    "settings",
    "endpoint",
    "admission",
)

# The clock, the world and concurrency, with the names in them that are none of these. Logging is
# let through: nothing depends on it, and a component's log is how its decisions are read later.
IMPURE = {
    "clock and chance": {"datetime", "sched", "secrets", "time", "uuid"},
    "network": {"http", "select", "selectors", "socket", "socketserver", "ssl", "urllib"},
    "files": {"fcntl", "glob", "io", "mmap", "pathlib", "shelve", "shutil", "sqlite3"},
    "system": {"ctypes", "getpass", "os", "platform", "pty", "signal", "subprocess", "tempfile"},
    "concurrency": {"asyncio", "concurrent", "multiprocessing", "queue", "threading"},
}
PURE_NAMES = ("pathlib.Pure", "urllib.parse")
SEEDED = "random.Random"  # chance that a test can repeat; the module's own functions are not
IMPURE_CALLS = frozenset({"breakpoint", "exec", "eval", "input", "open", "print"})

# What an editor's debug adapter must never pay for at its start (49 to 377 ms of CPU each).
STARTS_FAST = ("cli", "session")
SLOW_TO_IMPORT = frozenset(
    {"click", "lsprotocol", "numpy", "prompt_toolkit", "pygls", "rich", "shtab", "textual", "typer"}
)


@dataclass(frozen=True)
class Import:
    """One imported name, dotted, and where; `lazy` inside a function."""

    name: str
    line: int
    lazy: bool


def main(arguments: list[str]) -> int:
    """Print the violations below ROOT (this repository by default); 1 when there is any."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = [*violations(root), *engine_rooms(root), *slow_starts(root), *circles(root)]
    for line in found:
        print(line)
    if not found:
        print(f"layers: {len(modules(root))} modules, all arrows point down")
    return 1 if found else 0


def violations(root: Path) -> Iterator[str]:
    """Every import or effect that the tables above forbid, as `file:line: sentence`."""
    known = modules(root)
    for name, path in known.items():
        part, where = part_of(name), path.relative_to(root)
        layer = LAYERS.get(part)
        if layer is None:
            yield f"{where}:1: {part!r} has no row in tools/layers.py"
            continue
        for item in imports(path, name):
            yield from (f"{where}:{item.line}: {why}" for why in judge(item, part, layer))
        if layer.pure:
            found = effects(parse(path))
            yield from (f"{where}:{line}: {part} is pure: {what}" for line, what in found)


def judge(item: Import, part: str, layer: Layer) -> Iterator[str]:
    """Why this import is not allowed in this part; nothing when it is."""
    top, _, rest = item.name.partition(".")
    if top == PACKAGE:
        if not allowed(rest, part, layer):
            yield f"{part} may not import {item.name}"
    elif top not in sys.stdlib_module_names:
        if top not in layer.theirs:
            yield f"{part} may not import {top}"
    elif layer.pure and not item.name.startswith(PURE_NAMES):
        for kind in (kind for kind, names in IMPURE.items() if top in names):
            yield f"{part} is pure: it may not import {item.name} ({kind})"


def allowed(target: str, part: str, layer: Layer) -> bool:
    """Whether `target` (dotted, without the package) is within reach of `part`."""
    if target.partition(".")[0] not in LAYERS:
        return not layer.bare  # the package root: its version
    reach = (*layer.ours, part)
    return any(target == each or target.startswith(f"{each}.") for each in reach)


def effects(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Coroutines and calls that reach the world, whatever was imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncWith | ast.AsyncFor):
            yield node.lineno, "no coroutines in it"
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in IMPURE_CALLS or (name.startswith("random.") and name != SEEDED):
                yield node.lineno, f"it may not call {name}()"


def engine_rooms(root: Path) -> Iterator[str]:
    """Every import in the engine that points from a room to one above it."""
    known = modules(root)
    for name, path in known.items():
        room, where = room_of(name), path.relative_to(root)
        if room is None:
            if name.startswith(f"{ENGINE}.") and path.name != "__init__.py":
                yield f"{where}:1: in no room of the engine (ENGINE_ROOMS in tools/layers.py)"
            continue
        for item in imports(path, name):
            other = room_of(item.name)
            if other is not None and ENGINE_ROOMS.index(other) < ENGINE_ROOMS.index(room):
                yield f"{where}:{item.line}: {room} may not import {item.name}, which is above it"


def room_of(name: str) -> str | None:
    """Return the innermost room of the engine that a module is in."""
    rest = name.removeprefix(f"{ENGINE}.")
    rooms = [room for room in ENGINE_ROOMS if rest == room or rest.startswith(f"{room}.")]
    return max(rooms, key=len) if rooms and rest != name else None


def circles(root: Path) -> Iterator[str]:
    """Modules that import each other in a circle, for type checkers alone or lazily included."""
    known = modules(root)
    arrows = {
        name: {module_of(item.name, known) for item in imports(path, name)}
        for name, path in known.items()
    }
    try:
        TopologicalSorter({name: to - {name, ""} for name, to in arrows.items()}).prepare()
    except CycleError as error:
        yield f"circle: {' -> '.join(reversed(error.args[1]))}"


def module_of(name: str, known: dict[str, Path]) -> str:
    """Return the module that an imported name is, or is in; "" where it is not ours."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def slow_starts(root: Path) -> Iterator[str]:
    """Heavy distributions that importing the adapter's entry points would load."""
    known = modules(root)
    todo = [f"{PACKAGE}.{part}" for part in STARTS_FAST if f"{PACKAGE}.{part}" in known]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for item in imports(known[name], name):
            if item.lazy:
                continue
            if item.name.split(".")[0] in SLOW_TO_IMPORT:
                where = known[name].relative_to(root)
                yield f"{where}:{item.line}: the adapter's start would import {item.name}"
            todo += [each for each in ancestry(item.name) if each in known]


def modules(root: Path) -> dict[str, Path]:
    """Every module of the package by dotted name; a package stands for its `__init__`."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def part_of(name: str) -> str:
    """Return the part a module belongs to: `dap_mux.engine.stops.control` is in `engine`."""
    return name.split(".")[1] if "." in name else "__init__"


def parse(path: Path) -> ast.Module:
    """Read one file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def imports(path: Path, module: str) -> tuple[Import, ...]:
    """Every name that a module imports, relative ones resolved, wherever it stands."""
    return tuple(_imports(parse(path), module, is_package=path.name == "__init__.py"))


def _imports(
    tree: ast.AST, module: str, *, is_package: bool, lazy: bool = False
) -> Iterator[Import]:
    """Those of a node and of what is inside it; an expression holds none."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, module, is_package=is_package)
            yield from (Import(f"{base}.{alias.name}", node.lineno, lazy) for alias in node.names)
        elif not isinstance(node, ast.expr):
            inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports(node, module, is_package=is_package, lazy=inside)


def absolute(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    """Resolve `from ..x import y` as seen from `module`."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    base = parts[: len(parts) - node.level + is_package]
    return ".".join([*base, *([node.module] if node.module else [])])


def ancestry(name: str) -> list[str]:
    """`a.b.c` imports `a`, `a.b` and `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
