"""Somebody gets on, or nobody waits."""

from __future__ import annotations

from dap_mux.insight.why.picture import Picture
from dap_mux.insight.why.verdict import Verdict, ranks

NAME = "healthy"


def find(picture: Picture) -> Verdict | None:
    """Every rank that tells something is at work or gets on."""
    told = [one for one in picture.live if one.told]
    if not told or len(told) < len(picture.live):
        return None
    still = [one for one in told if one.wait is not None]
    if still and len(still) == len(told):
        return None
    moving = [one for one in told if one.wait is None and one.moves]
    if still and not moving:
        return None
    return Verdict(
        NAME, f"{ranks(moving or told)} {'is' if len(moving or told) == 1 else 'are'} at work"
    )
