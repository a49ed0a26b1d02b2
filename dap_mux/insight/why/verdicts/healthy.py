"""Somebody gets on, and nobody is waited for in vain."""

from __future__ import annotations

from dap_mux.insight.why.picture import Picture
from dap_mux.insight.why.verdict import Verdict, ranks, verb

NAME = "healthy"


def find(picture: Picture) -> Verdict | None:
    """Every rank that tells something is at work or gets on."""
    told = [one for one in picture.live if one.told]
    if not told or len(told) < len(picture.live) or any(one.tasks and one.stands for one in told):
        return None
    moving = [one for one in told if one.wait is None and one.moves]
    if not moving:
        return None
    return Verdict(NAME, f"{ranks(moving)} {verb(moving, 'is', 'are')} at work")
