"""Reads and validates `pathMappings`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dap_mux.errors import UsageError
from dap_mux.pathmap.mapping import HERE, Entry, PathMap
from dap_mux.pathmap.spelling import is_absolute, join, pure
from dap_mux.rank_sets import RankSet, RankSetError
from dap_mux.rank_sets import parse as parse_ranks

EXAMPLE: Final = '[{"localRoot": "${workspaceFolder}", "remoteRoot": "/remote/path"}]'
UNKNOWN: Final = "it cannot be resolved here; give the full path"
_VARIABLE: Final = r"\$\{([^}]*)\}"
_FOLDERS: Final = ("workspaceFolder", "workspaceRoot")


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
