"""A rank has an exception in hand, and does not get out of the code that handles it."""

from __future__ import annotations

from dap_mux.insight.why.picture import Picture
from dap_mux.insight.why.verdict import (
    Verdict,
    has_not_reached,
    look_at,
    place,
    ranks,
    suspects,
)

NAME = "exception-held"


def find(picture: Picture) -> Verdict | None:
    """It counts if it stands still there while others wait."""
    held = [
        one for one in picture.live if one.thread is not None and one.thread.handling and one.steady
    ]
    others = [one for one in picture.waiting if one not in held]
    if not held or not others:
        return None
    first = held[0].thread
    assert first is not None
    return Verdict(
        NAME,
        f"{ranks(held[:1])} handles {first.handling} and stands still at {place(held[0].place)}",
        suspects(held, picture),
        has_not_reached(held, picture),
        look_at(held),
    )
