"""Where a rank listens and what is known of it; which addresses others reach; back-off."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

MAX_PATTERNS: Final = 32
MAX_PATTERN: Final = 128  # characters
MAX_PATH: Final = 4096  # characters


class Traits(Struct, frozen=True):
    """Properties of a rank that its source knows, so that no user has to name them.

    `user_threads`: patterns (`*Task-Threads*`) of the names of threads that run user code: those
    that stand in it get rows of their own.
    `swallows_exceptions`: its framework catches what user code raises, so no process ends of it: a
    rank stops where an exception leaves user code, unless clients have chosen otherwise.
    `awaits_debugger`: its process waits for its first debugger only because its session has told
    it to, so without a client it is let run on.
    `copy`: a folder of the user's, and where this rank runs in a copy of it; or nothing.
    """

    user_threads: tuple[str, ...] = ()
    swallows_exceptions: bool = False
    awaits_debugger: bool = False
    copy: tuple[str, str] = ("", "")


NO_TRAITS: Final = Traits()


def read_traits(record: Mapping[str, Any]) -> Traits:
    """Read the traits of a rank's record, which is untrusted.

    `userThreads`: true (any thread) or a list of patterns; `swallowsExceptions` and
    `awaitsDebugger`: true or false;
    `localRoot` with `remoteRoot`: a folder and its copy. Raises ValueError, naming the field.
    """
    threads = _user_threads(record.get("userThreads") or [])
    swallows, awaits = (_flag(record, name) for name in ("swallowsExceptions", "awaitsDebugger"))
    return Traits(threads, swallows, awaits, _copy(record))


def _flag(record: Mapping[str, Any], name: str) -> bool:
    value = record.get(name) or False
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false")
    return value


def _copy(record: Mapping[str, Any]) -> tuple[str, str]:
    local, remote = record.get("localRoot"), record.get("remoteRoot")
    if not local:
        return ("", "")
    for name, root in (("localRoot", local), ("remoteRoot", remote)):
        if not (isinstance(root, str) and root.startswith("/") and len(root) <= MAX_PATH):
            raise ValueError(f"{name} must be the full path of a folder")
    return str(local), str(remote)


def _user_threads(patterns: object) -> tuple[str, ...]:
    if patterns is True:
        return ("*",)
    if not (isinstance(patterns, list) and len(patterns) <= MAX_PATTERNS):
        raise ValueError(f"userThreads must be true or at most {MAX_PATTERNS} names of threads")
    if not all(isinstance(one, str) and 0 < len(one) <= MAX_PATTERN for one in patterns):
        raise ValueError(f"userThreads must be names of threads, of 1 to {MAX_PATTERN} characters")
    return tuple(patterns)


class Endpoint(Struct, frozen=True):
    """One debugpy endpoint.

    `remote_root`: what a ranks file says of where the sources are there.
    `announces`: the rank says when it listens, and is left alone until then; `ready`: it has
    said so.
    `dials`: it listens nowhere but calls us (`host` and `port` are its end, "" and 0 before its
    first call); `ready` until we have taken up the call, for each connection is one call.
    `way_down`: why no connection can succeed now (the tunnel is down, the pod has not started); ''
    where one may: then the rank is connected at once. It is known, not tried out.
    `watched`: who found the rank sees its process, and says so when that ends (`RankExited`).
    `incarnation`: another word for another process, where no pid tells them apart.
    """

    host: str
    port: int
    pid: int | None = None
    coords: Mapping[str, int] = field(default_factory=dict)
    host_name: str = ""
    remote_root: str = ""
    announces: bool = False
    ready: bool = False
    way_down: str = ""
    incarnation: str = ""
    dials: bool = False
    watched: bool = False
    traits: Traits = NO_TRAITS

    @property
    def shown(self) -> tuple[object, ...]:
        """What `list` shows of it."""
        return self.host, self.port, self.host_name, self.pid, self.coords, self.dials

    def __str__(self) -> str:
        """Return `host:port`, with brackets around an IPv6 host; `dial` before a first call."""
        if not self.port:
            return "dial"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine and nothing else."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


_MAX_DOUBLINGS = 16
_LEAST_SHARE = 0.75  # of a delay; the rest is chance, so that many do not try at once


class Backoff(NamedTuple):
    """Delays from `first` up to `longest` seconds."""

    first: float
    longest: float

    def delay(self, failures: int, chance: float = 1.0) -> float:
        """Return how many seconds to wait after so many failures in a row.

        `chance`, a random number from 0 to 1, spreads the attempts of several peers.
        """
        limit = min(self.first * 2.0 ** min(failures, _MAX_DOUBLINGS), self.longest)
        return limit * (_LEAST_SHARE + (1 - _LEAST_SHARE) * chance)
