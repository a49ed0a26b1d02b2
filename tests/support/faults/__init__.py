"""A TCP proxy that fails on demand, and the ways in which it can: one small class each."""

from tests.support.faults.kinds import (
    PASS,
    BlackHole,
    Corrupt,
    Cut,
    Fault,
    Inject,
    Latency,
    OneByte,
    Orphan,
    Rate,
    Refuse,
    Reset,
    Stall,
)
from tests.support.faults.proxy import FaultProxy, proxied, proxies

__all__ = [
    "PASS",
    "BlackHole",
    "Corrupt",
    "Cut",
    "Fault",
    "FaultProxy",
    "Inject",
    "Latency",
    "OneByte",
    "Orphan",
    "Rate",
    "Refuse",
    "Reset",
    "Stall",
    "proxied",
    "proxies",
]
