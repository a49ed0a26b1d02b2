"""Expressions that the session evaluates in ranks: how code gets there, how results are read."""

from __future__ import annotations

import ast
import marshal
import re
import warnings
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from typing import Final, Literal
from zlib import compress, crc32

import msgspec
from msgspec import Struct

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.insight.timeouts import RAISED_TIMEOUT_S
from dap_mux.pure.pathmap import RankPaths
from dap_mux.pure.protocol.rank_messages import read_text

# The modules of `dap_mux.rank.injected` that the engine sends to ranks, and how it calls them.
#
# One that is called by itself comes with each call. A bundle is kept in the rank, on its debugger,
# under a name that another version of it has not: compiling `evidence` takes a rank as long as
# fifteen samples, and compiling `attach` 0.8 ms at each attach (measured). Bundles are packed, for
# every rank's adapter decodes and encodes them: a third of the bytes, and no escapes in them (a
# quarter of the time to attach 32, measured).

# The name of the file that they are compiled as. pydevd takes files whose names begin like this for
# its own, so a step of the user's does not end in them; `<string>` would be the user's.
FILE_NAME: Final = "<builtin dap_mux>"
# The names of the frame where it is evaluated may be others than Python's own.
PYTHON: Final = "__import__('builtins')"
KEPT: Final = f"{PYTHON}.vars(__import__('pydevd').get_global_debugger())"


class Bundle:
    """Modules that a rank keeps once it has them. The first is run first, and runs the others.

    `value` is an expression for what is wanted of them: `own` are the names of the first, and
    `own['sent']` all of them, as sources or compiled.
    """

    def __init__(self, name: str, sources: Mapping[str, str]) -> None:
        self._name = name
        self._sources = sources
        self._kept_as = f"dap_mux_{name}_{crc32(msgspec.json.encode(sources)):08x}"

    @lru_cache(maxsize=8)  # noqa: B019 - there is one of each name, as long as the process
    def ask(self, value: str) -> str:
        """Return an expression for the value, or where a rank has not kept them for JSON.

        It is `{"lacks": "bytecode"}` where it has our version of Python, else `"source"`: in that
        form it is to be sent them.
        """
        magic = "__import__('importlib.util').util.MAGIC_NUMBER"
        lacks = f"'bytecode' if {magic} == {MAGIC_NUMBER!r} else 'source'"
        return (
            f'(lambda own: {value} if own else \'{{"lacks":"%s"}}\' % ({lacks}))'
            f"({KEPT}.get({self._kept_as!r}))"
        )

    @lru_cache(maxsize=8)  # noqa: B019
    def bring(self, value: str, *, compiled: bool = False) -> str:
        """Return an expression for the value, which brings them for a rank that lacks them.

        `compiled`: as bytecode of this Python, without docstrings.
        """
        run = f"own['sent'][{self._name!r}]"
        if compiled:
            load, packed = "__import__('marshal').loads", marshal.dumps(self._compiled())
        else:
            load, packed = "__import__('json').loads", msgspec.json.encode(self._sources)
            run = f"python.compile({run}, {FILE_NAME!r}, 'exec')"
        text = b64encode(compress(packed, 9)).decode()
        sent = f"{load}(__import__('zlib').decompress(__import__('base64').b64decode({text!r})))"
        return (
            f"(lambda python, kept: (lambda own: {value})(kept.get({self._kept_as!r})"
            f" or (lambda own: (python.exec({run}, own),"
            f" kept.setdefault({self._kept_as!r}, own))[-1])({{'sent': {sent}}})))"
            f"({PYTHON}, {KEPT})"
        )

    def _compiled(self) -> dict[str, object]:
        return {
            name: compile(source, FILE_NAME, "exec", dont_inherit=True, optimize=2)
            for name, source in self._sources.items()
        }


REPLAY_PLACE: Final = f"{PYTHON}.__import__('sys').modules['dap_mux.rank.take.replayer'].place()"
"""Where a replay is, in its rank."""


class InjectedSources:
    """The source of each module; the session reads them, for the engine reads no files.

    `folders`: sources by bundle and name; the first of a bundle is the one that is run first.
    """

    def __init__(self, folders: Mapping[str, Mapping[str, str]]) -> None:
        self.all = {name: text for each in folders.values() for name, text in each.items()}
        self.bundles = {name: Bundle(name, sources) for name, sources in folders.items() if name}

    def __getitem__(self, module: str) -> str:
        return self.all[module]

    @lru_cache(maxsize=8)  # noqa: B019
    def bundle(self, *modules: str) -> Bundle:
        """Return these modules as a bundle; the first is run first."""
        return Bundle(modules[0], {name: self.all[name] for name in modules})


def call(source: str, function: str, *arguments: str) -> str:
    """Return an expression: a function of a module, called in a rank.

    `arguments` are Python themselves: their names are those of the frame where the expression is
    evaluated, which may even have others for builtins (`compile = True`). No name stays behind:
    without a frame, pydevd evaluates in globals of its own.
    """
    given = "".join(f"{argument}, " for argument in arguments)
    return (
        "(lambda builtins, module, *given: (builtins.exec(builtins.compile("
        f"{source!r}, {FILE_NAME!r}, 'exec'), module), module[{function!r}](*given))[1])"
        f"(__import__('builtins'), {{}}, {given})"
    )


_CALL: Final = re.compile(
    r"\(lambda builtins, module, \*given: .*, module\['(\w+)'\]\(\*given\)\)\[1\]\)"
    r"\(__import__\('builtins'\), \{\}, (.*)\)",
    re.DOTALL,
)


def called(expression: str) -> tuple[str, str] | None:
    """Return the function and the arguments, as written, of what `call` has returned."""
    found = _CALL.fullmatch(expression)
    return (found[1], found[2]) if found else None


MAX_PARSED_CHARS: Final = 4096  # longer texts are not parsed here, but by the ranks
UNCLOSED: Final = "was never closed"  # what Python says of a bracket whose other half is missing


def syntax_problem(text: str, mode: Literal["exec", "eval"]) -> str:
    """Return what is wrong with a text as Python, '' for nothing; it is not too long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the user's escapes and comparisons, not ours
        try:
            ast.parse(text, mode=mode)
        except SyntaxError as error:
            return error.msg or "invalid syntax"
        except (ValueError, RecursionError, MemoryError) as error:
            return str(error) or "too deeply nested"
    return ""


def is_expression(text: str, longest: int = MAX_PARSED_CHARS) -> bool:
    """Whether Python takes this for an expression; anything else is run as a statement.

    A long text counts as a statement, for debugpy evaluates either way where it runs statements.
    """
    text = text.strip()
    return len(text) <= longest and not syntax_problem(text, "eval")


def is_program(text: str) -> bool:
    """Whether Python can read this; of a long text, whether it begins as Python does."""
    if len(text) <= MAX_PARSED_CHARS:
        return not syntax_problem(text, "exec")
    line = text[: MAX_PARSED_CHARS + 1].partition("\n")[0]
    problem = syntax_problem(line[:MAX_PARSED_CHARS], "exec")
    return not problem or UNCLOSED in problem


MAX_COMPARED_BYTES: Final = 4 * 1024 * 1024  # of a larger file only the size is compared
WORKING_FOLDER: Final = "__import__('os').getcwd()"


# Files, by `injected.file_probe`.


class Found(msgspec.Struct, frozen=True):
    """The digest of a rank's file at a path, "" if there is none.

    `near`: loaded files of that name, with their digests, and whether the rank was started with
    them; given only if the file is missing or does not have the expected digest.
    """

    digest: str = ""
    near: list[tuple[str, str, bool]] = []


class Content(msgspec.Struct, frozen=True):
    """A file's text, or why it cannot be had."""

    text: str | None = None
    problem: str = "it could not be read"


def look_at(source: str, path: str, digest: str) -> str:
    """Return the expression whose value `found` reads; `digest` is the expected one, "" for any."""
    return call(source, "compare", repr(path), repr(digest), str(MAX_COMPARED_BYTES))


def read(source: str, path: str) -> str:
    """Return the expression whose value `content` reads."""
    return call(source, "read", repr(path), str(MAX_COMPARED_BYTES))


def found(result: str) -> Found:
    """Read an answer. Raises `PeerFault`."""
    return read_text(result, Found)


def content(result: str) -> Content:
    """Read an answer. Raises `PeerFault`."""
    return read_text(result, Content)


# A rank's stacks, by `injected.evidence.stacks`.

MAX_FRAMES: Final = 200  # of a thread, the innermost ones


class Stacks(Struct):
    """A rank's answer; `functions` and `files` are named by their places in the lists."""

    files: list[tuple[str, bool]]
    functions: list[str]
    threads: list[tuple[str, bool, list[tuple[int, int, int]]]]


def ask_stacks(source: str, task_trees: str = "", *, every_thread: bool) -> str:
    """Return an expression for `stacks.stacks`; `task_trees`: that of asyncio tasks."""
    return call(source, "stacks", repr(every_thread), repr(task_trees))


def stacks_of(told: Stacks, paths: RankPaths) -> Iterator[tuple[str, Stack]]:
    """Yield the name and the stack of each thread, with the session's paths.

    Raises `PeerFault` for a frame of a file or function that was not listed.
    """
    files = [(paths.to_local(path) or path, library) for path, library in told.files]
    for name, _, frames in told.threads:
        yield name, tuple(_frame(told, files, frame) for frame in frames[-MAX_FRAMES:])


def _frame(told: Stacks, files: Sequence[tuple[str, bool]], frame: tuple[int, int, int]) -> Frame:
    file, function, line = frame
    if not (0 <= file < len(files) and 0 <= function < len(told.functions)):
        raise PeerFault("a frame of a file or function that is not listed")
    path, library = files[file]
    return Frame(path, told.functions[function], line, library)


# A rank's time-outs, by `injected.timeout_probe`.


def look_at_timeouts(source: str, *, extends: bool) -> str:
    """Return the expression whose value `read_report` reads; `extends`: raise what is too short."""
    return call(source, "look", str(RAISED_TIMEOUT_S if extends else 0))


def put_timeouts_back(source: str) -> str:
    """Return the expression that undoes `look_at_timeouts`; its value: how many time-outs."""
    return call(source, "put_back")


# The mode in which a rank records its communication, by `injected.comm_switch`.


def switch_comm(source: str, mode: str) -> str:
    """Return an expression that begins a mode, "" for none, and says which one is on."""
    return call(source, "switch", repr(mode))


# Stops at wrong numbers, by `injected.guard_switch`.


def arm_for_not_finite(source: str, stops: bool, locates: bool) -> str:
    """Return an expression whose value is what keeps a rank from it, "" for nothing."""
    return call(source, "switch", "'not_finite'", str(stops), repr({"locates": locates}))


def arm_for_diverged(source: str, tells: bool, equal: str) -> str:
    """Return an expression whose value is what keeps a rank from it, "" for nothing.

    `equal`: the user's, which is to have the same value in all ranks.
    """
    return call(source, "switch", "'live'", str(tells), repr({"equal": equal} if equal else {}))


def look_at_step(source: str, until: int | None) -> str:
    """Return an expression that has a rank wait after its step, and tells what it has had."""
    return call(source, "look", repr(until))


def go_on(
    source: str,
    stop: int,
    text: str,
    sets: Mapping[str, list[str]] | None,
    others: str,
    compared: Mapping[str, str],
) -> str:
    """Return an expression that ends that wait, to stop after a step unless it is negative.

    `compared`: the arguments of `rank.comm.live`'s `comparison`, for what clients show there.
    """
    return call(source, "go", str(stop), repr(text), repr(sets), repr(others), repr(compared))


# What torch knows in a rank, by `injected.torch_state`.

COMPILED: Final = "torch.compile has compiled"  # in a breakpoint's message


def look_at_torch(source: str, places: Sequence[tuple[str, int]], wants_mesh: bool) -> str:
    """Return an expression for `torch_state.look`."""
    return call(source, "look", repr(list(places)), repr(wants_mesh))


def compiled(source: str, places: Sequence[tuple[str, int]]) -> str:
    """Return an expression for `torch_state.compiled`."""
    return call(source, "compiled", repr(list(places)))


def meshes(source: str) -> str:
    """Return an expression for `torch_state.meshes`."""
    return call(source, "meshes")


def why_it_does_not_stop(function: str, root: str) -> str:
    """Return what a breakpoint in a compiled function says; `root`: what it is inlined into."""
    into = f" into {root}" if root else ""
    return (
        f"{COMPILED} {function}{into}, and compiled code does not stop: start the job with "
        "TORCH_COMPILE_DISABLE=1, or put @torch.compiler.disable before the function"
    )


# Tensors and arrays are summarised in the rank: what comes here is a line, never their data.


def summarised(source: str, text: str) -> str:
    """Return an expression for the value of `text`, or for a summary of a tensor or array.

    `source`: that of `injected.tensor_summary`. A summary's `repr` is one line; a tensor of one
    element is its number. It has the type's name, and `shape`, `dtype`, `device`, `norm`, `nan`,
    `inf` as attributes. Of one that is spread over ranks it has `placements`, and the other numbers
    are of its `local` part. Statements stay as they are.
    """
    python = text.replace("$", "_")  # `$rank` and its like are put in later
    return call(source, "seen", f"({text}\n)") if is_expression(python) else text
