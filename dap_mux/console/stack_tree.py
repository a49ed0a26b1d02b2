"""The response of `stacks` as text: a branch begins with its ranks, innermost frames come last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import PurePath
from typing import Any, Final

from dap_mux.console.screen import Screen

Body = Mapping[str, Any]
MAIN: Final = "MainThread"
INDENT: Final = "  "


def show_stacks(screen: Screen, body: Body, *, library: bool = False) -> None:
    """Show the tree of each thread. `library`: also the frames of libraries, one by one."""
    for thread in body["threads"]:
        if thread["name"] != MAIN:
            screen.say(f"{thread['name']}:", "title")
        for branch in thread["branches"]:
            screen.say("\n".join(_branch(branch, 0, library=library)))
    for one in body["missing"]:
        screen.say(f"{{{one['ranks']}}}: {one['message']}", "error")
    if not body["threads"] and not body["missing"]:
        screen.say("no ranks")


def _branch(branch: Body, depth: int, *, library: bool) -> Iterator[str]:
    indent = INDENT * depth
    yield f"{indent}{{{branch['ranks']}}}"
    for line in _frames(_shown(branch["frames"], depth, library=library), library=library):
        yield f"{indent}{INDENT}{line}"
    if branch["ends"]:
        yield f"{indent}{INDENT}{_end(branch)}"
    for inner in branch["branches"]:
        yield from _branch(inner, depth + 1, library=library)


def _shown(frames: list[Body], depth: int, *, library: bool) -> list[Body]:
    """Leave out what has called the program, as `runpy` does, unless there is nothing else."""
    if depth or library:
        return frames
    own = next((at for at, frame in enumerate(frames) if not frame["library"]), 0)
    return frames[own:]


def _end(branch: Body) -> str:
    """Name the ranks whose innermost frame this is, and those of them that are stopped."""
    some = f"{{{branch['ends']}}} " if branch["ends"] != branch["ranks"] else ""
    stopped = branch["stopped"]
    if not stopped:
        return f"└ {some}running"
    return (
        f"└ {some}stopped"
        if stopped == branch["ends"]
        else f"└ {some}running; {{{stopped}}} stopped"
    )


def _frames(frames: Iterable[Body], *, library: bool) -> Iterator[str]:
    """Fold frames of libraries that call each other into the innermost of them."""
    for of_library, group in groupby(frames, lambda frame: bool(frame["library"])):
        together = [*group]
        if of_library and not library and len(together) > 1:
            yield f"… {len(together)} library frames, the innermost {_frame(together[-1])}"
        else:
            yield from map(_frame, together)


def _frame(frame: Body) -> str:
    name = PurePath(frame["path"]).name if "/" in frame["path"] else frame["path"]
    return f"{frame['name']}  {name}:{frame['line']}"
