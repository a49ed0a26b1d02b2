"""Selects the entries that apply to a rank, and translates its paths both ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from dap_mux.pathmap.spelling import below, join, pure, slashed
from dap_mux.rank_sets import RankId, RankSet, RankSetError, World

HERE: Final = "."


class Entry(Struct, frozen=True):
    """One entry as the user meant it: roots are absolute; `remote` may be "."."""

    local: str
    remote: str
    hosts: tuple[str, ...] = ()
    ranks: RankSet | None = None

    def applies(self, place: Place, world: World) -> bool:
        """Whether it applies to this rank."""
        return self._on_host(place) and self._to_rank(place.rank, world)

    def _on_host(self, place: Place) -> bool:
        names = [host.casefold() for host in place.hosts]
        return not self.hosts or any(
            fnmatchcase(name, pattern.casefold()) for name in names for pattern in self.hosts
        )

    def _to_rank(self, rank: RankId, world: World) -> bool:
        try:
            return self.ranks is None or rank in self.ranks.select(world, strict=False)
        except RankSetError:
            return False  # it uses names or dimensions that are not known yet

    @property
    def key(self) -> PurePath:
        """The local root, equal for all spellings of it."""
        return pure(self.local)(self.local)

    @property
    def vague(self) -> int:
        """The order of entries with one local root: for some ranks, for some hosts, for all."""
        return 0 if self.ranks else 1 if self.hosts else 2


class Place(Struct, frozen=True):
    """The properties of a rank that mappings depend on.

    `remote_root` comes from a ranks file; `cwd` is its working folder, "" while unknown.
    `local_root`: the folder of which `remote_root` is a copy, "" for the workspace.
    """

    rank: RankId
    hosts: tuple[str, ...] = ()
    remote_root: str = ""
    cwd: str = ""
    local_root: str = ""


class RankPaths(Struct, frozen=True):
    """The mappings of one rank, in the order in which they are tried."""

    roots: tuple[tuple[str, str], ...] = ()

    @property
    def plain(self) -> list[dict[str, str]]:
        """The list that the rank's debugpy gets."""
        return [
            {
                "localRoot": slashed(local),
                "remoteRoot": HERE if remote == HERE else slashed(remote),
            }
            for local, remote in self.roots
        ]

    def to_remote(self, path: str) -> str | None:
        """Return the rank's path for a client's; unchanged if no root contains it.

        None if the rank's working folder is needed and not known.
        """
        return self._swap(path, self.roots)

    def to_local(self, path: str) -> str | None:
        """Return the client's path for a rank's; unchanged if no root contains it."""
        return self._swap(path, [(remote, local) for local, remote in self.roots])

    def root_of(self, path: str) -> str:
        """Return the local root that contains a client's path, "" if none does."""
        return next((local for local, _ in self.roots if below(local, path) is not None), "")

    @staticmethod
    def _swap(path: str, roots: Iterable[tuple[str, str]]) -> str | None:
        for old, new in roots:
            rest = None if old == HERE else below(old, path)
            if rest is not None:
                return None if new == HERE else join(new, rest)
        return path


class PathMap(Struct, frozen=True):
    """All entries of a session. `folder` is the value of "." and `${workspaceFolder}`.

    `leans`: an entry depends on it; `guessed`: the client did not name it.
    """

    entries: tuple[Entry, ...] = ()
    folder: str = ""
    leans: bool = False
    guessed: bool = False

    def for_rank(self, place: Place, world: World) -> RankPaths:
        """Return one rank's mappings; the root that its ranks file names beats the user's."""
        chosen = [entry for entry in self.entries if entry.applies(place, world)]
        if place.remote_root:
            chosen = list(self._overridden(chosen, place))
        return RankPaths(
            tuple((e.local, _known(e.remote, place)) for e in _ordered(_exact(chosen)))
        )

    def _overridden(self, entries: list[Entry], place: Place) -> Iterator[Entry]:
        """Give its remote root to the entry for the workspace, failing that to the first."""
        local = place.local_root or next((e.local for e in entries if e.local == self.folder), "")
        local = local or next((e.local for e in entries), self.folder)
        if local:
            yield Entry(local, place.remote_root)
        yield from (entry for entry in entries if entry.local != local)


def _known(remote: str, place: Place) -> str:
    return place.cwd or HERE if remote == HERE else remote


def _exact(entries: list[Entry]) -> list[Entry]:
    """Of the entries with one local root, keep the most specific ones."""
    vague: dict[PurePath, int] = {}
    for entry in entries:
        vague[entry.key] = min(entry.vague, vague.get(entry.key, entry.vague))
    return [entry for entry in entries if entry.vague == vague[entry.key]]


def _ordered(entries: list[Entry]) -> Iterator[Entry]:
    """Yield longer roots first; where local and remote ones disagree, the local ones decide."""
    left = list(entries)
    while left:
        free = [e for e in left if not any(_inside(o, e) or _inside_there(o, e) for o in left)]
        free = free or [e for e in left if not any(_inside(o, e) for o in left)]
        left.remove(free[0])
        yield free[0]


def _inside(entry: Entry, other: Entry) -> bool:
    """Whether its local root lies in the other's."""
    return bool(below(other.local, entry.local))


def _inside_there(entry: Entry, other: Entry) -> bool:
    """The same for the remote roots; equal local ones keep the user's order."""
    if HERE in (entry.remote, other.remote) or entry.key == other.key:
        return False
    return bool(below(other.remote, entry.remote))
