"""Network addresses: which ones others can reach, and the back-off between attempts."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple


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
