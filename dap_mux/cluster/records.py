"""One rank and where it listens, and the ranks file that lists them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final, TypeGuard

from dap_mux.pure.endpoint import NO_TRAITS, Traits, read_traits
from dap_mux.pure.errors import UsageError
from dap_mux.system.user_files import parse_json, read_regular

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
    """Validate one entry of a ranks file; unknown keys are ignored, and null counts as absent."""
    if not isinstance(entry, dict):
        raise UsageError(f"{where}: must be an object with host and port")
    given = {key: value for key, value in entry.items() if value is not None}
    for key, is_one, kind in _FIELDS:
        if key in given and not is_one(given[key]):
            raise UsageError(f"{where}: {key} must be {kind}, not {json.dumps(given[key])}")
        if key in _NEEDED and given.get(key, "") == "":
            raise UsageError(f"{where}: {key} is missing")
    try:
        traits = read_traits(given)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    return RankRecord(
        host=given["host"],
        port=given["port"],
        rank=given.get("rank"),
        group=given.get("group") or DEFAULT_GROUP,
        pid=given.get("pid"),
        coords=given.get("coords"),
        world_size=given.get("world_size"),
        remote_root=given.get("remoteRoot"),
        traits=traits,
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def is_natural(value: object, below: float = inf) -> TypeGuard[int]:
    """Whether it is a number from 0 on; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def _is_port(value: object) -> bool:
    return is_natural(value) and 0 < value <= LAST_PORT


def _are_coords(value: object) -> bool:
    return isinstance(value, dict) and all(map(is_natural, value.values()))


_NATURAL: Final = "a number, 0 or more"
_NEEDED: Final = ("host", "port")
# The checks of a record, in order. A port that is not a number has a message of its own.
_FIELDS: Final[tuple[tuple[str, Callable[[object], bool], str], ...]] = (
    ("host", _is_text, "text"),
    ("port", is_natural, _NATURAL),
    ("port", _is_port, f"a port, 1 to {LAST_PORT}"),
    ("rank", is_natural, _NATURAL),
    ("group", _is_text, "text"),
    ("pid", is_natural, _NATURAL),
    ("coords", _are_coords, 'an object such as {"dp": 0, "tp": 1}'),
    ("world_size", is_natural, _NATURAL),
    ("remoteRoot", _is_text, "text"),
)
