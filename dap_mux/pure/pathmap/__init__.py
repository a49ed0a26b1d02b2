"""`pathMappings`: where the user's files lie on each rank's host.

An entry is debugpy's `{"localRoot", "remoteRoot"}` with two keys more: `hosts` (names or glob
patterns) and `ranks` (a rank set) limit it to some ranks. `parse` reads what a user wrote,
`PathMap.for_rank` gives one rank's `RankPaths`: the plain list that its debugpy gets, and the
same translation for paths that we make up ourselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Final, TypeAlias

from msgspec import Struct

from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankId, RankSet, RankSetError, World
from dap_mux.pure.rank_sets import parse as parse_ranks

HERE: Final = "."
EXAMPLE: Final = '[{"localRoot": "${workspaceFolder}", "remoteRoot": "/remote/path"}]'
UNKNOWN: Final = "it cannot be resolved here; give the full path"
_VARIABLE: Final = r"\$\{([^}]*)\}"
_FOLDERS: Final = ("workspaceFolder", "workspaceRoot")
WINDOWS: Final = r"[A-Za-z]:[\\/]|\\\\"


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


# Which entry applies: the longest root wins, both ways; of equal local roots the one for `ranks`,
# then the one for `hosts`, then the first. debugpy takes the first entry whose root the path begins
# with (read in 1.8.22), so the plain list is in that order; and as it compares text, `/src` would
# take in `/src2`, so its roots end with a slash.
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


# What a user wrote


class BadMapping(UsageError):
    """An unusable entry of `pathMappings`; the message names the entry and a remedy."""


def parse(value: object, folder: str = "") -> PathMap:
    """Read the attach argument `pathMappings`; None means no entries. Raises `BadMapping`.

    `folder`: the client's workspace, for "." and for `${workspaceFolder}`, which most editors
    have replaced already; "" if it is not known.
    """
    if value is None:
        return PathMap(folder=folder)
    if not isinstance(value, list):
        raise BadMapping(f"pathMappings must be a list such as {EXAMPLE}, not {_shown(value)}")
    readers = [_Reader(entry, number, folder) for number, entry in enumerate(value, 1)]
    entries = tuple(reader.entry() for reader in readers)
    return PathMap(entries, folder, any(reader.leans for reader in readers))


class _Reader:
    """Reads one entry; errors name it by its number, starting at 1."""

    def __init__(self, value: object, number: int, folder: str) -> None:
        self._where = f"pathMappings, entry {number}"
        if not isinstance(value, Mapping):
            raise BadMapping(
                f"{self._where}: must be an object as in {EXAMPLE}, not {_shown(value)}"
            )
        self._value = value
        self._folder = folder
        self.leans = False

    def entry(self) -> Entry:
        """Return the entry."""
        return Entry(self._local(), self._remote(), self._hosts(), self._ranks())

    def _local(self) -> str:
        root = self._root("localRoot")
        if is_absolute(root):
            return root
        if not self._folder or root.startswith("~"):
            raise self._bad("localRoot", root, UNKNOWN)
        self.leans = True
        return join(self._folder, pure(self._folder)(root).parts)

    def _remote(self) -> str:
        root = self._root("remoteRoot")
        if root.rstrip("/\\") == HERE:
            return HERE
        if is_absolute(root):
            return root
        raise self._bad("remoteRoot", root, 'give the full path, or "." for where the rank runs')

    def _root(self, key: str) -> str:
        value = self._value.get(key)
        if not isinstance(value, str) or not value:
            raise self._bad(key, value, f"it must be a path, as in {EXAMPLE}")
        return re.sub(_VARIABLE, lambda found: self._variable(key, value, found[1]), value)

    def _variable(self, key: str, value: str, name: str) -> str:
        if name not in (*_FOLDERS, "workspaceFolderBasename"):
            raise self._bad(key, value, f"your editor did not resolve ${{{name}}}; give the path")
        if not self._folder:
            raise self._bad(key, value, UNKNOWN)
        self.leans = True
        return self._folder if name in _FOLDERS else pure(self._folder)(self._folder).name

    def _hosts(self) -> tuple[str, ...]:
        value = self._value.get("hosts")
        names = [value] if isinstance(value, str) else [] if value is None else value
        if not isinstance(names, list) or not all(isinstance(n, str) and n for n in names):
            raise self._bad("hosts", value, 'it must be a list of names, as in ["node1", "gpu-*"]')
        if value is not None and not names:
            raise self._bad("hosts", value, "it names no host; omit it to include every host")
        return tuple(names)

    def _ranks(self) -> RankSet | None:
        value = self._value.get("ranks")
        if value is None:
            return None
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str):
            raise self._bad("ranks", value, 'it must be a rank set, as in "0-3" or "ranks(dp=0)"')
        try:
            return parse_ranks(text)
        except RankSetError as error:
            raise BadMapping(f"{self._where}: ranks: {error}") from None

    def _bad(self, key: str, value: object, help: str) -> BadMapping:
        found = f"{key} is missing" if value is None else f"{key} is {_shown(value)}"
        return BadMapping(f"{self._where}: {found}: {help}")


def _shown(value: object) -> str:
    import json  # noqa: PLC0415  (as `user_files` has it: only mistakes are shown)

    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


# POSIX and Windows paths as text, on any machine


def below(root: str, path: str) -> tuple[str, ...] | None:
    """Return the parts of `path` below `root`, None if it is not below."""
    if is_windows(root) != is_windows(path):
        return None
    kind = pure(root)
    base, parts = kind(root).parts, kind(path).parts
    if kind(*parts[: len(base)]) != kind(root) or len(parts) < len(base):
        return None
    return parts[len(base) :]


def join(root: str, parts: Iterable[str]) -> str:
    return str(pure(root)(root, *parts))


def slashed(root: str) -> str:
    slash = "\\" if is_windows(root) else "/"
    return root if root.endswith(("/", "\\")) else root + slash


def is_windows(path: str) -> bool:
    """Whether it is a Windows path: `C:\\x`, `c:/x`, or a share."""
    return re.match(WINDOWS, path) is not None


def pure(path: str) -> type[PurePath]:
    return PureWindowsPath if is_windows(path) else PurePosixPath


def is_absolute(path: str) -> bool:
    return path.startswith("/") or is_windows(path)


Fit: TypeAlias = tuple[str, str]
Near: TypeAlias = tuple[str, str, bool]


def fitting(local: str, digest: str, near: Iterable[Near], root: str) -> tuple[Fit, bool] | None:
    """Return the roots that lead from a client's path to one of `near`, and whether `root` stays.

    `near`: files of that name in a rank. One with the expected `digest` beats the longest common
    end; a common name alone counts only if the rank was started with that file. `root`: the local
    root that the path is mapped by now; a shorter one would never apply.
    """
    parts, separator = _parts(local)
    likely = [each for each in near if _is_likely(parts, digest, each)]
    if not likely:
        return None
    theirs, slash = _parts(
        max(likely, key=lambda each: (each[1] == digest, _tail(parts, each[0])))[0]
    )
    longest = len(parts) - (len(_parts(root)[0]) if root else 2)
    count = min(_tail(parts, slash.join(theirs)), longest)
    if count < 1:
        return None
    here, there = separator.join(parts[:-count]), slash.join(theirs[:-count])
    return (here, there or slash), bool(root) and here == root.rstrip("/\\")


def _is_likely(parts: list[str], expected: str, near: Near) -> bool:
    path, digest, started = near
    tail = _tail(parts, path)
    return tail > 0 and (started or tail > 1 or digest == expected != "")


def _parts(path: str) -> tuple[list[str], str]:
    separator = "\\" if "\\" in path else "/"
    return path.rstrip(separator).split(separator), separator


def _tail(parts: list[str], path: str) -> int:
    """Return how many last parts two paths share."""
    pairs = zip(reversed(parts), reversed(_parts(path)[0]), strict=False)
    same = [mine == theirs for mine, theirs in pairs] + [False]
    return same.index(False)
