"""Expressions that call functions of `dap_mux.rank.injected` in a rank, and how results are read.

`source` is the text of the module that is called. All but a value's summary are evaluated without a
frame, which works while the rank runs and before it is configured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.insight.timeouts import RAISED_TIMEOUT_S
from dap_mux.pure.pathmap import RankPaths
from dap_mux.pure.protocol.rank_messages import read_text
from dap_mux.pure.remote.injected_sources import call
from dap_mux.pure.remote.python_syntax import is_expression

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
