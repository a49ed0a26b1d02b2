"""The ranks among processes that a user has named, and among those that they have started.

What tells ranks from their launcher, which may be Python too as torchrun is, and from their own
workers, which inherit a rank's number, are the variables that launchers set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from dap_mux import procfs
from dap_mux.cluster.python_process import RunningPython
from dap_mux.errors import DapMuxError, NothingToConnect, UsageError
from dap_mux.rank.environ import Place, place_of

Children: TypeAlias = Mapping[int, Sequence[int]]
_Key: TypeAlias = tuple[str | None, int | None]


def ranks_among(pids: Iterable[int]) -> list[RunningPython]:
    """Return the ranks that these processes are or have started, each one once.

    Raises `DapMuxError` if one of them is none of Python's and has started none either.
    """
    children = _children()
    found: list[RunningPython] = []
    for pid in pids:
        found += [each for each in _ranks_of(pid, children) if each not in found]
    return _without_workers(found, children)


def _ranks_of(pid: int, children: Children) -> list[RunningPython]:
    """Return a process itself, or the ranks that it has started if it is a launcher."""
    own = _key(place_of(procfs.environ(pid)))
    ranks: dict[_Key, RunningPython] = {}
    others: list[RunningPython] = []
    for process, is_outermost in _pythons_below(pid, children):
        key = _key(process.place)
        if key[1] is not None and key != own:
            ranks.setdefault(key, process)
        elif is_outermost:
            others.append(process)
    if ranks:
        return [*ranks.values()]
    try:
        return [RunningPython.read(pid)]
    except NothingToConnect:
        if not others:
            raise
        return others


def _without_workers(found: Sequence[RunningPython], children: Children) -> list[RunningPython]:
    """Leave out who has a rank's number and was started by it. Raises `UsageError`."""
    ranks: dict[_Key, RunningPython] = {}
    kept: list[RunningPython] = []
    # A worker may be named before its rank, as where numbers of processes have begun anew.
    for process in sorted(found, key=lambda one: _depth(one.pid)):
        key = _key(process.place)
        other = ranks.get(key) if key[1] is not None else None
        if other is None:
            ranks[key] = process
            kept.append(process)
        elif process.pid not in _below(other.pid, children):
            raise UsageError(
                f"duplicate rank {key[1]}: process {other.pid} and process {process.pid}; "
                "name the processes of one job only"
            )
    return [each for each in found if each in kept]


def _key(place: Place) -> _Key:
    return place.launcher, place.rank


def _depth(pid: int) -> int:
    depth = 0
    while (parent := procfs.parent(pid)) is not None and parent > 0:
        pid, depth = parent, depth + 1
    return depth


def _below(pid: int, children: Children) -> Iterator[int]:
    """Yield all descendants, parents before children."""
    waiting = [*children.get(pid, ())]
    while waiting:
        one = waiting.pop(0)
        yield one
        waiting += children.get(one, ())


def _pythons_below(pid: int, children: Children) -> Iterator[tuple[RunningPython, bool]]:
    """Yield the descendants that are Python and ours to look at, and whether none is above."""
    inside: set[int] = set()
    for one in _below(pid, children):
        try:
            process = RunningPython.read(one)
        except (DapMuxError, OSError):
            continue  # a shell, a daemon, or one that has just ended
        yield process, one not in inside
        inside.update(_below(one, children))


def _children() -> Children:
    found: dict[int, list[int]] = {}
    for pid in procfs.pids():
        parent = procfs.parent(pid)
        if parent is not None:
            found.setdefault(parent, []).append(pid)
    return {parent: sorted(pids) for parent, pids in found.items()}
