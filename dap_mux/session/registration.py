"""A rank's description of itself when it connects to a session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from dap_mux.engine.endpoint import NO_TRAITS, Traits, read_traits

MAX_RANKS: Final = 65536  # of a group


@dataclass(frozen=True)
class Registration:
    """How a rank describes itself. `rank` None: it has no number. `size`: of its group, or 0."""

    group: str
    rank: int | None
    host: str
    pid: int
    coords: dict[str, int]
    size: int
    traits: Traits = NO_TRAITS

    @property
    def place(self) -> str:
        """Where it runs, for messages."""
        return f"process {self.pid} on {self.host}"


def read_registration(said: Mapping[str, Any]) -> Registration:
    """Validate a rank's description, which is untrusted. Raises ValueError."""
    group, rank, host = said.get("group"), said.get("rank"), said.get("host")
    pid, coords = said.get("pid"), said.get("coords") or {}
    size = said.get("world_size") or 0
    if not (isinstance(group, str) and re.fullmatch(r"[A-Za-z_][\w.-]{0,63}", group)):
        raise ValueError(f"invalid group {str(group)[:80]!r}")
    if not (isinstance(host, str) and 0 < len(host) <= 255 and host.isprintable()):
        raise ValueError("invalid host")
    if not (rank is None or _is_number(rank, MAX_RANKS)) or not _is_number(pid, 2**32):
        raise ValueError("invalid rank or pid")
    if not _is_number(size, MAX_RANKS + 1):
        raise ValueError("invalid world_size")
    if not isinstance(coords, dict) or not all(
        _is_number(one, MAX_RANKS) for one in coords.values()
    ):
        raise ValueError("invalid coords")
    places = {str(dim): place for dim, place in coords.items()}
    return Registration(group, rank, host, pid, places, size, read_traits(said))


def _is_number(value: object, limit: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit
