"""Ranks as DAP threads: the ids, rows and names that clients see.

A row's id belongs to a rank, or to a further Python thread of it, for the whole session: it
survives stops, reconnects and regrouping, so that an editor's tree stays as the user left it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from dap_mux.engine.state.client import Client
from dap_mux.engine.state.rank import Frame, Rank
from dap_mux.engine.state.session import SessionState, host_of
from dap_mux.pure.errors import StaleHandle
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.pure.rank_sets.world import DebuggeeId

VIEWS: Final = ("ranks", "classes", "auto")
MAIN_THREAD: Final = "MainThread"
MAX_THREADS: Final = 65_536  # with a row; beyond it the oldest lose theirs


class Row(Struct, frozen=True):
    """One DAP thread. Requests go to `members[0]`; `thread` is a further Python thread of it."""

    id: int
    name: str
    members: tuple[Rank, ...]
    stopped: bool
    thread: int | None = None


class View:
    """The rows of a session, as each client sees them."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._ids: dict[tuple[DebuggeeId, int | None], int] = {}
        self._owners: dict[int, tuple[DebuggeeId, int | None]] = {}
        self._last = 0
        # Rows of further Python threads, the oldest first.
        self._threads: deque[tuple[DebuggeeId, int | None]] = deque()

    def id_of(self, rank: DebuggeeId, thread: int | None = None) -> int:
        """Return the row id of a rank, or of one further thread of it."""
        key = (rank, thread)
        if key not in self._ids:
            self._last += 1
            self._ids[key] = self._last
            self._owners[self._last] = key
            if thread is not None:
                self._threads.append(key)
                if len(self._threads) > MAX_THREADS:
                    del self._owners[self._ids.pop(self._threads.popleft())]
        return self._ids[key]

    def mode(self) -> str:
        """Return the effective view: `threads` (one rank), `ranks` or `classes`."""
        core = self._core
        if core.single:
            return "threads"
        if core.view == "auto":
            return "classes" if core.live > core.settings.classes_above else "ranks"
        return core.view

    def rows(self, client: Client) -> list[Row]:
        """Return the rows in the order in which an editor shows them."""
        if self.mode() == "classes":
            return self._class_rows(client)
        return [row for rank in self._core.live_ranks() for row in self._rank_rows(rank)]

    def _rank_rows(self, rank: Rank) -> list[Row]:
        single = self._core.single
        if self._has_one_row(rank):
            return [self._row([rank], self.name_of(rank))]
        main = main_thread(rank)
        whose = self.name_of(rank)
        label = "" if single and rank.main is None else f"{whose} / "
        names = rank.threads or {main: MAIN_THREAD}
        names = {id: label + name for id, name in names.items()}
        if single and rank.main:
            names[main] = whose
        return [self._row([rank], name, None if id == main else id) for id, name in names.items()]

    def _has_one_row(self, rank: Rank) -> bool:
        rows = self._core.rows_of(rank)
        few = rows == "user" and len(rank.threads) < 2 and not self._core.single
        return rows == "main" or few

    def _row(self, members: list[Rank], name: str, thread: int | None = None) -> Row:
        id, stopped = self.id_of(members[0].id, thread), members[0].stop is not None
        return Row(id, name, tuple(members), stopped, thread)

    def name_of(self, rank: Rank) -> str:
        """Return `rank 3 / worker 1 · dp=0 tp=1 · node1`: the distinguishing part comes first."""
        core = self._core
        name = f"rank {rank.number}" + (f" @{rank.id[0]}" if core.several_groups else "")
        if rank.main:
            name = f"worker {rank.worker}" if core.single else f"{name} / worker {rank.worker}"
        coords = " ".join(f"{dim}={at}" for dim, at in coords_of(core, rank).items())
        parts = [name, coords, host_of(rank) if core.several_hosts else "", rank.wait]
        return " · ".join(part for part in parts if part)

    def _class_rows(self, client: Client) -> list[Row]:
        groups: dict[tuple[object, ...], list[Rank]] = {}
        rows: list[Row] = []
        for rank in self._core.live_ranks():
            if rank.id == client.focus.rank:
                rows.append(self._row([rank], self._class_name([rank])))
            else:
                stop = rank.stop
                kind = "stopped" if stop else "worker" if rank.main else rank.wait or "rank"
                key = (rank.id[0], stop.frames if stop else None, kind)
                groups.setdefault(key, []).append(rank)
        return rows + [self._row(each, self._class_name(each)) for each in groups.values()]

    def _class_name(self, members: list[Rank]) -> str:
        first = members[0]
        where = first.wait or "running"
        if first.stop:
            frame = (first.stop.frames or (Frame("", "stopped", 0),))[0]
            where = f"{base_name(frame.path)}:{frame.line}" if frame.path else frame.name
        if len(members) == 1:
            name = self.name_of(first)
            return name if first.wait else f"{name} · {where}"
        return f"{len(members)} × {where} · {_who(members)}"

    def resolve(self, client: Client, thread: object) -> tuple[list[Rank], int]:
        """Return a row's ranks, the one to ask first, and debugpy's thread id in that one.

        Raises `StaleHandle` if the session has no such thread now.
        """
        key = self._owners.get(thread) if isinstance(thread, int) else None
        rank = self._core.ranks.get(key[0]) if key else None
        if key is None or rank is None or not rank.phase.live:
            raise StaleHandle(f"no thread {thread} in this session")
        members = [rank]
        if self.mode() == "classes":
            members = next((list(r.members) for r in self.rows(client) if r.id == thread), members)
        return members, self.upstream(rank, key[1])

    def upstream(self, rank: Rank, thread: int | None) -> int:
        """Return debugpy's id for a row: the thread that caused the stop, else the main one."""
        if thread is not None:
            return thread
        whole = self._core.shows_threads(rank)
        return rank.stop.thread if rank.stop and not whole else main_thread(rank)

    def ids_for_stops(self, client: Client, ranks: Iterable[Rank]) -> tuple[int, ...]:
        """Return the rows that show the stops of these ranks, each once."""
        if self.mode() != "classes":
            return tuple(dict.fromkeys(self.id_for_stop(client, rank) for rank in ranks))
        shown = {rank.id: row.id for row in self._class_rows(client) for rank in row.members}
        return tuple(dict.fromkeys(shown.get(rank.id) or self.id_of(rank.id) for rank in ranks))

    def id_for_stop(self, client: Client, rank: Rank) -> int:
        """Return the row that shows a stop of this rank, or its last stop while it runs."""
        if self.mode() == "classes":
            rows = self.rows(client)
            return next((r.id for r in rows if rank in r.members), self.id_of(rank.id))
        if not self._core.shows_threads(rank):
            return self.id_of(rank.id)
        thread = rank.stop.thread if rank.stop else rank.last_thread
        known = rank.stop is not None or thread in rank.threads
        return self.id_of(rank.id, thread if known and thread != main_thread(rank) else None)


def _who(members: list[Rank]) -> str:
    """Return `ranks 0-3`, `workers of ranks 0-2`, or both."""
    ranks = {rank.rank_id for rank in members if rank.main is None}
    of_workers = {rank.rank_id for rank in members if rank.main}
    parts = [_ranks(ranks)] * bool(ranks) + [f"workers of {_ranks(of_workers)}"] * bool(of_workers)
    return " and ".join(parts)


def _ranks(ranks: set[RankId]) -> str:
    return f"{'ranks' if len(ranks) > 1 else 'rank'} {fold(ranks)}"


def base_name(path: str) -> str:
    """Return the last part of a path of whichever system."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def coords_of(core: SessionState, rank: Rank) -> dict[str, int]:
    """Return the rank's coordinates in its mesh, {} if no mesh is known."""
    mesh = core.mesh_of(rank.id[0])
    coords = mesh.coords(rank.number) if mesh and rank.number in mesh else {}
    return {**(rank.endpoint.coords or {}), **coords}


def main_thread(rank: Rank) -> int:
    """Return debugpy's id of the thread that the rank's own row shows.

    Its main thread, by name, because it is not always 1, unless rows are those of user code.
    """
    if rank.home in rank.threads:
        return rank.home
    for id, name in rank.threads.items():
        if name == MAIN_THREAD:
            return id
    return min(rank.threads, default=1)


def shows_other_threads(rank: Rank) -> bool:
    """Whether what a rank does may be seen in another thread than its main one."""
    stop = rank.stop
    if stop is None:
        return bool(rank.endpoint.traits.user_threads)
    return rank.threads.get(stop.thread, MAIN_THREAD) != MAIN_THREAD


def leading_threads(rank: Rank, told: Sequence[tuple[str, bool, bool]]) -> list[int]:
    """Return the places of the threads that show what a rank does.

    That is the one that is stopped; of a running rank those in user code that its source calls user
    threads; else the main one. `told`: name, whether it is the main one, whether in user code.
    """
    stop, patterns = rank.stop, rank.endpoint.traits.user_threads
    if stop is not None:
        name = rank.threads.get(stop.thread)
        found = [place for place, one in enumerate(told) if one[0] == name]
    else:
        found = [
            place
            for place, (name, _, in_user_code) in enumerate(told)
            if in_user_code and any(fnmatchcase(name, pattern) for pattern in patterns)
        ]
    return found or [place for place, one in enumerate(told) if one[1]]


def values_of(core: SessionState, rank: Rank) -> dict[str, object]:
    """Return the values of `$rank` and the like in one rank's conditions and log messages.

    The fixed names beat mesh dimensions.
    """
    world_size = len(core.world().numbers.get(rank.id[0], ()))
    fixed = {"rank": rank.number, "world_size": world_size, "host": host_of(rank)}
    return {**coords_of(core, rank), **fixed}


def named(core: SessionState, ranks: Iterable[RankId]) -> str:
    """Return ranks as a rank set, with their group wherever that is not the only one."""
    ids = list(ranks)
    text = fold(ids, core.default_group())
    alone = core.several_groups and len({id[0] for id in ids}) == 1
    return f"{ids[0][0]}:{text}" if alone else text
