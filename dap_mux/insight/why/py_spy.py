"""Reads what `py-spy dump --json --locals` prints of a process: its Python stacks, from outside.

The memory of a running process is read, so anything may be malformed. What it is becomes the same
`Sample` that a rank tells of itself, with what a `Sample` has beyond that left unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct

from dap_mux.errors import PeerFault
from dap_mux.insight.why.called import Source, call_at, is_library
from dap_mux.insight.why.evidence import Call, Sample, Thread
from dap_mux.insight.why.waits import TORCH
from dap_mux.printable import one_line

MAIN: Final = "MainThread"
UNNAMED: Final = "a thread that Python did not start"
MAX_THREADS: Final = 64
MAX_FRAMES: Final = 200
MAX_CHARS: Final = 500
MAX_LINE: Final = 10_000_000
PROGRESS_FRAMES: Final = 8
MODULE: Final = "<module>"
MAX_VARIABLES: Final = 12
MAX_VARIABLE_CHARS: Final = 80
TORCH_PEERS: Final = {"send": ("dst", "tag"), "recv": ("src", "tag")}
_NUMBER: Final = re.compile(r"-?\d{1,18}", re.ASCII)


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
) -> Sample:
    """Return a process's sample. `state_of`: a thread by the system's number.

    `source_of`: a file's text, None where that cannot be read.
    """
    names = _Names()
    told = [_thread(each, pid, state_of, source_of, names) for each in threads]
    told.sort(key=lambda each: not each.main)
    files = [(path, is_library(path)) for path in names.files]
    return Sample(files, [*names.functions], told, world_rank=world_rank)


class _Names:
    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.functions: dict[str, int] = {}

    def place(self, frame: SpiedFrame) -> tuple[int, int, int]:
        file, function = frame.filename[:MAX_CHARS], plain_name(frame.name)
        return (
            self.files.setdefault(file, len(self.files)),
            self.functions.setdefault(function, len(self.functions)),
            min(max(frame.line, 0), MAX_LINE),
        )


def variables_of(threads: Sequence[SpiedThread], pid: int) -> str:
    """Return the variables of the innermost function of the program that the main thread is in.

    As `load: shard = "shard-2", step = 3`; "" for none.
    """
    main = next((each for each in threads if _is_main(each, pid)), None)
    frames = main.frames[:MAX_FRAMES] if main is not None else []
    own = next((frame for frame in frames if not is_library(frame.filename)), None)
    if own is None or own.name == MODULE:  # the names of a whole program are too many
        return ""
    told = (f"{name} = {text}" for name, text in _locals(own).items())
    shown = [one_line(each[:MAX_VARIABLE_CHARS]) for each in islice(told, MAX_VARIABLES)]
    return f"{plain_name(own.name)}: {', '.join(shown)}" if shown else ""


def _is_main(spied: SpiedThread, pid: int) -> bool:
    tid = spied.os_thread_id or 0
    return tid == pid or (not tid and spied.thread_name == MAIN)


def _thread(
    spied: SpiedThread,
    pid: int,
    state_of: Callable[[int], State],
    source_of: Callable[[str], Source | None],
    names: _Names,
) -> Thread:
    tid = spied.os_thread_id or 0
    main = _is_main(spied, pid)
    frames = spied.frames[:MAX_FRAMES]
    return Thread(
        name=MAIN if main else (spied.thread_name or UNNAMED)[:MAX_CHARS],
        main=main,
        frames=[names.place(frame) for frame in reversed(frames)],
        call=_call(frames[0], source_of) if frames else None,
        progress=_progress(frames),
        owns_gil=spied.owns_gil,
        **(state_of(tid) if tid else {}),
    )


def _call(frame: SpiedFrame, source_of: Callable[[str], Source | None]) -> Call | None:
    """Return the call that a frame is in; of libraries only torch's, whose peers count."""
    variables = _locals(frame)
    if is_library(frame.filename):
        name = plain_name(frame.name)
        if name not in TORCH_PEERS or not frame.filename.endswith(TORCH):
            return None
        numbers = {each: variables.get(each, "") for each in TORCH_PEERS[name]}
        peers = {each: int(text) for each, text in numbers.items() if _NUMBER.fullmatch(text)}
        return Call("", arguments=peers)
    source = source_of(frame.filename)
    return call_at(source, frame.line, variables) if source is not None else None


def plain_name(qualified: str) -> str:
    """Return a function's own name: `wrapper` of `decorate.<locals>.wrapper`."""
    return qualified.rpartition(".")[2][:MAX_CHARS]


def _locals(frame: SpiedFrame) -> Mapping[str, str]:
    return {each.name: each.repr for each in frame.locals or () if each.repr is not None}


def _progress(frames: Sequence[SpiedFrame]) -> str:
    """Return a digest of the whole numbers among the variables of the program's own functions."""
    own = [frame for frame in frames if not is_library(frame.filename)][:PROGRESS_FRAMES]
    found = [[text for text in _locals(frame).values() if _NUMBER.fullmatch(text)] for frame in own]
    return f"{crc32(repr(found).encode()):08x}" if any(found) else ""
