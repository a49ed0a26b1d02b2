"""Reads what `py-spy dump --json --locals` prints of a process: its Python stacks, from outside.

The memory of a running process is read, so anything may be malformed. What it is becomes the same
`Sample` that a rank tells of itself, with what a `Sample` has beyond that left unknown.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.why.evidence import Call, Names, Sample, Thread, is_library
from dap_mux.pure.insight.why.waits import TORCH_CALLS, TORCH_NAMES, communicates

# The call that a thread is in, by its line in the source alone: nothing runs in the process.
# `injected/evidence/waiting_calls.py` knows more in a rank: which instruction it is at, and what
# names mean. Here a name means what the file imports or assigns to it, else what its printed value
# says.

MAX_TEXT: Final = 200
MAX_STEPS: Final = 8
"""How often a name may be followed to the one that it was assigned from."""
MAX_NUMBER: Final = 1 << 40
_OBJECT: Final = re.compile(r"<([\w.]+) at 0x[0-9a-f]+>")
_SMALL_NUMBER: Final = re.compile(r"-?\d{1,12}", re.ASCII)
_OPERATORS: Final[Mapping[type, Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.BitXor: operator.xor,
}


class Source:
    """A file's calls, imports and assignments, read once."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.calls: dict[int, list[ast.Call]] = {}
        self.imports: dict[str, str] = {}
        self.assigned: dict[str, ast.expr] = {}
        self.blocks: list[ast.For | ast.While | ast.With] = []
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in ast.walk(tree):
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            self.calls.setdefault(node.lineno, []).append(node)
        elif isinstance(node, ast.Import):
            for each in node.names:
                name = each.asname or each.name.partition(".")[0]
                self.imports[name] = each.name if each.asname else name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for each in node.names:
                self.imports[each.asname or each.name] = f"{node.module}.{each.name}"
        elif isinstance(node, ast.For | ast.While | ast.With):
            self.blocks.append(node)
        elif isinstance(node, ast.Assign):
            self.assigned.setdefault(_dotted(node.targets[0]), node.value)

    def line(self, number: int) -> str:
        """Return a line's text, "" where there is none."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def around(self, line: int) -> Sequence[ast.AST]:
        """Return the loops around a line, the outermost first."""
        loops = [one for one in self.blocks if not isinstance(one, ast.With)]
        found = [one for one in loops if one.lineno <= line <= (one.end_lineno or 0)]
        return sorted(found, key=lambda one: one.lineno)

    def counters(self, line: int) -> set[str]:
        """Return the names that the loops around a line count with."""
        targets = (one.target for one in self.around(line) if isinstance(one, ast.For))
        return {each.id for one in targets for each in ast.walk(one) if isinstance(each, ast.Name)}

    @property
    def _withs(self) -> Iterator[ast.With]:
        return (one for one in self.blocks if isinstance(one, ast.With))

    def entered(self, line: int) -> ast.withitem | None:
        """Return what a line enters by `with`, None for nothing or several."""
        items = [item for one in self._withs for item in one.items]
        found = [item for item in items if item.context_expr.lineno == line]
        return found[0] if len(found) == 1 else None

    def inside(self, line: int) -> set[str]:
        """Return the names of all that has been entered around a line."""
        around = [
            one
            for one in self._withs
            if max(one.lineno + 1, one.body[0].lineno) <= line <= (one.end_lineno or 0)
        ]
        return {_name(item) for one in around for item in one.items} - {""}


def _name(item: ast.withitem) -> str:
    """A plain name: `self.lock` may be another one in each frame."""
    return item.context_expr.id if isinstance(item.context_expr, ast.Name) else ""


def call_at(source: Source, line: int, variables: Mapping[str, str]) -> Call | None:
    """Return the call at a line, by its text alone where there are several.

    `variables`: those of the frame, as py-spy prints them.
    """
    text = source.line(line)
    found = _only(source.calls.get(line, []), source, variables)
    if found is None:
        return Call(text[:MAX_TEXT]) if source.calls.get(line) else None
    try:
        return Call(
            " ".join(ast.unparse(found).split())[:MAX_TEXT],
            _meaning(found.func, source, variables),
            dict(_arguments(found, variables)),
        )
    except RecursionError:  # a sum of thousands of terms is parsed, and not printed
        return Call(text[:MAX_TEXT])


def _only(calls: list[ast.Call], source: Source, variables: Mapping[str, str]) -> ast.Call | None:
    """Of several the one that is called like a communication, or is one of torch's."""
    if len(calls) < 2:
        return calls[0] if calls else None
    like = [
        each
        for each in calls
        if communicates(_dotted(each.func).rpartition(".")[2])
        or _meaning(each.func, source, variables).startswith(TORCH_CALLS)
    ]
    return like[0] if len(like) == 1 else None


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` as it is written, "" for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _meaning(node: ast.expr, source: Source, variables: Mapping[str, str]) -> str:
    """Return the module and name of a function, as far as the source tells; "" for unknown."""
    if isinstance(node, ast.Name):
        return source.imports.get(node.id, "" if node.id in variables else node.id)
    if not isinstance(node, ast.Attribute):
        return ""
    of = _kind(node.value, source, variables, MAX_STEPS)
    return f"{of}.{node.attr}" if of else ""


def _kind(node: ast.expr, source: Source, variables: Mapping[str, str], steps: int) -> str:
    """Return what a value is by its printed value, else by the first part of what made it."""
    if steps == 0:
        return ""
    name = _dotted(node)
    if name in variables:
        shown = _OBJECT.fullmatch(variables[name])
        return shown[1] if shown else ""
    root, _, rest = name.partition(".")
    if root in source.imports and root not in variables:
        return f"{source.imports[root]}.{rest}".rstrip(".")
    if name and name in source.assigned:
        return _kind(source.assigned[name], source, variables, steps - 1)
    if isinstance(node, ast.Call):
        return _kind(node.func, source, variables, steps - 1)
    if isinstance(node, ast.Attribute):
        return _kind(node.value, source, variables, steps - 1)
    return ""


def _arguments(call: ast.Call, variables: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield those that are numbers or short texts, by their names or places."""
    named = [(str(place), each) for place, each in enumerate(call.args)]
    named += [(each.arg, each.value) for each in call.keywords if each.arg]
    for name, node in named:
        value = _text(node) or _number(node, variables, MAX_STEPS)
        if value is not None:
            yield name, value


def _text(node: ast.expr) -> str | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) and len(value) <= MAX_TEXT else None


def _number(node: ast.expr, variables: Mapping[str, str], steps: int) -> int | None:
    """Work out a whole number from constants and the frame's variables."""
    if steps == 0:
        return None
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and abs(node.value) < MAX_NUMBER else None
    if isinstance(node, ast.Name):
        shown = variables.get(node.id, "")
        return int(shown) if _SMALL_NUMBER.fullmatch(shown) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, variables, steps - 1)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left = _number(node.left, variables, steps - 1)
        right = _number(node.right, variables, steps - 1)
        if left is None or right is None:
            return None
        try:
            return _OPERATORS[type(node.op)](left, right)
        except ZeroDivisionError:
            return None
    return None


# What py-spy prints

MAIN: Final = "MainThread"
UNNAMED: Final = "a thread that Python did not start"
FUTEX: Final = "futex"
ENTERS: Final = "__enter__"
MAX_THREADS: Final = 64
MAX_FRAMES: Final = 200
MAX_CHARS: Final = 500
MAX_LINE: Final = 10_000_000
PROGRESS_FRAMES: Final = 8
TORCH_FOLDER: Final = "torch/distributed/"
_NUMBER: Final = re.compile(r"-?\d{1,18}", re.ASCII)
_DIGITS: Final = re.compile(r"-?\d{1,18}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?", re.ASCII)


class Local(Struct, frozen=True):
    """A variable; `repr` is py-spy's own, of simple values only."""

    name: str
    repr: str | None = None


class SpiedFrame(Struct, frozen=True):
    """A call. `name` is qualified where the process's Python knows that."""

    name: str
    filename: str
    line: int
    locals: list[Local] | None = None


class SpiedThread(Struct, frozen=True):
    """A thread; its innermost frame comes first."""

    frames: list[SpiedFrame]
    thread_name: str | None = None
    os_thread_id: int | None = None
    owns_gil: bool = False


Polls = Callable[[Sequence[ast.AST]], bool]
State = Mapping[str, Any]
"""Fields of a `Thread` that the system knows."""


def threads_in(dump: bytes) -> list[SpiedThread]:
    """Return the threads of a dump. Raises PeerFault."""
    try:
        threads = msgspec.json.decode(dump, type=list[SpiedThread])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PeerFault(f"malformed output of py-spy: {error}") from None
    if not threads:
        raise PeerFault("py-spy found no Python thread")
    return threads[:MAX_THREADS]


def sample_of(
    threads: Sequence[SpiedThread],
    pid: int,
    state_of: Callable[[int], State],
    source_of: Callable[[str], Source | None],
    world_rank: int = -1,
    polls: Polls = lambda _: False,
) -> Sample:
    """Return a process's sample. `state_of`: a thread by the system's number.

    `source_of`: a file's text, None where that cannot be read. `polls`: whether the innermost of
    some loops looks for something until it is there.
    """
    names = Names()
    told = [_thread(each, pid, state_of, source_of, names, polls) for each in threads]
    told.sort(key=lambda each: not each.main)
    return Sample([*names.files], [*names.functions], told, world_rank=world_rank)


def is_main(spied: SpiedThread, pid: int) -> bool:
    """Whether it is the thread that a process with this number began with."""
    tid = spied.os_thread_id or 0
    return tid == pid or (not tid and spied.thread_name == MAIN)


def _thread(
    spied: SpiedThread,
    pid: int,
    state_of: Callable[[int], State],
    source_of: Callable[[str], Source | None],
    names: Names,
    polls: Polls,
) -> Thread:
    tid = spied.os_thread_id or 0
    main = is_main(spied, pid)
    frames = spied.frames[:MAX_FRAMES]
    state = state_of(tid) if tid else {}
    lock, holds, call = "", list[str](), _call(frames, source_of) if frames else None
    if state.get("system_call") == FUTEX:
        lock, holds, wanted = _locks(frames, source_of)
        call = call or wanted
    return Thread(
        name=MAIN if main else (spied.thread_name or UNNAMED)[:MAX_CHARS],
        main=main,
        frames=[_place(frame, names) for frame in reversed(frames)],
        call=call,
        lock=lock,
        holds=holds,
        progress=_progress(frames, source_of, polls),
        owns_gil=spied.owns_gil,
        **state,
    )


def _locks(
    frames: Sequence[SpiedFrame], source_of: Callable[[str], Source | None]
) -> tuple[str, list[str], Call | None]:
    """Return the lock that a sleeping thread wants, those it has, and how it is taken.

    By their names in `with` statements. One of `multiprocessing` is taken in a library's function.
    """
    own = [frame for frame in frames if not is_library(frame.filename)]
    known = [(frame, source) for frame in own if (source := source_of(frame.filename)) is not None]
    holds = [
        f"{frame.filename}:{name}" for frame, at in known for name in sorted(at.inside(frame.line))
    ]
    item = known[0][1].entered(known[0][0].line) if known else None
    if item is None or not (known[0][0] is frames[0] or plain_name(frames[0].name) == ENTERS):
        return "", holds, None
    name = _name(item)
    call = Call(f"{known[0][1].line(known[0][0].line)[:MAX_TEXT].rstrip(':')} (a lock)")
    return (f"{known[0][0].filename}:{name}" if name else ""), holds, call


def _place(frame: SpiedFrame, names: Names) -> tuple[int, int, int]:
    file, line = frame.filename[:MAX_CHARS], min(max(frame.line, 0), MAX_LINE)
    return names.place(file, plain_name(frame.name), line, library=is_library(file))


def _call(frames: Sequence[SpiedFrame], source_of: Callable[[str], Source | None]) -> Call | None:
    """Return the call that a thread is in; of libraries only what torch's functions were given."""
    frame, variables = frames[0], locals_of(frames[0])
    if is_library(frame.filename):
        told = _names_in_torch(frames)
        return Call("", arguments=told) if told else None
    source = source_of(frame.filename)
    return call_at(source, frame.line, variables) if source is not None else None


def _names_in_torch(frames: Sequence[SpiedFrame]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for frame in reversed(frames):
        names = TORCH_NAMES.get(plain_name(frame.name), ())
        if not names or TORCH_FOLDER not in frame.filename:
            continue
        variables = locals_of(frame)
        for name in names:
            text = variables.get(name, "None")
            if _NUMBER.fullmatch(text):
                found[name] = int(text)
            elif text[:1] in "['\"":
                found[name] = text.strip("'\"")
    return {name: value for name, value in found.items() if value != -1}


def plain_name(qualified: str) -> str:
    """Return a function's own name: `wrapper` of `decorate.<locals>.wrapper`."""
    return qualified.rpartition(".")[2][:MAX_CHARS]


def locals_of(frame: SpiedFrame) -> Mapping[str, str]:
    """Return what py-spy shows of a frame's variables."""
    return {each.name: each.repr for each in frame.locals or () if each.repr is not None}


def _progress(
    frames: Sequence[SpiedFrame], source_of: Callable[[str], Source | None], polls: Polls
) -> str:
    """Return a digest of the numbers among the variables of the program's own functions.

    Without those of the innermost one where it looks for something until it is there.
    """
    own = [frame for frame in frames if not is_library(frame.filename)][:PROGRESS_FRAMES]
    source = source_of(own[0].filename) if own else None
    if source is not None and polls(source.around(own[0].line)):
        del own[0]
    found = [
        [text for text in locals_of(frame).values() if _DIGITS.fullmatch(text)] for frame in own
    ]
    return f"{crc32(repr(found).encode()):08x}" if any(found) else ""
