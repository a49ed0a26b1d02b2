"""One rank and where it listens, and the ranks file that lists them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeGuard

from dap_mux.engine.endpoint import NO_TRAITS, Traits, read_traits
from dap_mux.errors import UsageError
from dap_mux.user_files import parse_json, read_regular

DEFAULT_GROUP = "job"
FIRST_PORT = 5678  # of rank 0, where an endpoint names none
LAST_PORT = 65535
_UNFIT: Final = re.compile(r"[^\w.-]", re.ASCII)


def group_name(name: str) -> str:
    """Return a cluster's own name as the name of a group: it begins with a letter."""
    fit = _UNFIT.sub("-", name)
    return fit if fit[:1].isalpha() or fit[:1] == "_" else f"group-{fit}"


def ports_of(found: re.Match[str], word: object) -> range:
    """Return the ports of an endpoint, by its groups `first`, `last` and `count`.

    Raises `UsageError`.
    """
    first = int(found["first"] or FIRST_PORT)
    last = first + int(found["count"]) - 1 if found["count"] else int(found["last"] or first)
    if not 0 < first <= last <= LAST_PORT:
        raise UsageError(f"{word}: {first} to {last} is not a range of ports (1 to {LAST_PORT})")
    return range(first, last + 1)


@dataclass(frozen=True, kw_only=True)
class RankRecord:
    """A rank to connect to. `rank` is None until something has numbered it.

    `ready`: the rank has reported that it listens, so connecting at once is safe. `incarnation`:
    differs between processes of one rank where no pid does. `waits`: why an expected rank is not
    there yet.
    """

    host: str
    port: int
    rank: int | None = None
    group: str = DEFAULT_GROUP
    pid: int | None = None
    coords: Mapping[str, int] | None = None
    world_size: int | None = None
    remote_root: str | None = None
    ready: bool = False
    incarnation: str = ""
    waits: str = ""
    traits: Traits = NO_TRAITS

    @property
    def endpoint(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def read_ranks_file(path: Path) -> list[RankRecord]:
    """Return the records of a ranks file. Raises `UsageError`, naming file and entry."""
    try:
        entries = parse_json(read_regular(path))
    except OSError as error:
        raise UsageError(f"cannot read the ranks file {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"the ranks file {path} is not JSON: {error}") from error
    if not isinstance(entries, list):
        raise UsageError(f"the ranks file {path} must hold a list of ranks")
    return [record_of(entry, f"{path}, entry {place}") for place, entry in enumerate(entries)]


def record_of(entry: object, where: str) -> RankRecord:
    """Validate one entry of a ranks file; unknown keys are ignored."""
    if not isinstance(entry, dict):
        raise UsageError(f"{where}: must be an object with host and port")
    fields = _Fields(entry, where)
    return RankRecord(
        host=fields.text("host") or fields.missing("host"),
        port=fields.port(),
        rank=fields.number("rank"),
        group=fields.text("group") or DEFAULT_GROUP,
        pid=fields.number("pid"),
        coords=fields.coords(),
        world_size=fields.number("world_size"),
        remote_root=fields.text("remoteRoot"),
        traits=fields.traits(),
    )


class _Fields:
    """The fields of one entry, type-checked (`UsageError`); null counts as absent."""

    def __init__(self, entry: Mapping[str, object], where: str) -> None:
        self._entry = entry
        self._where = where

    def text(self, key: str) -> str | None:
        value = self._entry.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(key, "text")

    def number(self, key: str) -> int | None:
        value = self._entry.get(key)
        if value is None or _is_natural(value):
            return value
        raise self._wrong(key, "a number, 0 or more")

    def port(self) -> int:
        port = self.number("port")
        if port is None:
            self.missing("port")
        if not 0 < port <= LAST_PORT:
            raise self._wrong("port", f"a port, 1 to {LAST_PORT}")
        return port

    def coords(self) -> Mapping[str, int] | None:
        value = self._entry.get("coords")
        if value is None:
            return None
        if isinstance(value, dict) and all(map(_is_natural, value.values())):
            return value
        raise self._wrong("coords", 'an object such as {"dp": 0, "tp": 1}')

    def traits(self) -> Traits:
        try:
            return read_traits(self._entry)
        except ValueError as error:
            raise UsageError(f"{self._where}: {error}") from None

    def missing(self, key: str) -> NoReturn:
        raise UsageError(f"{self._where}: {key} is missing")

    def _wrong(self, key: str, kind: str) -> UsageError:
        value = json.dumps(self._entry[key])
        return UsageError(f"{self._where}: {key} must be {kind}, not {value}")


def _is_natural(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
