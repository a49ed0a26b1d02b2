"""A rank does not take part in what the others wait for, and does not move."""

from __future__ import annotations

from dap_mux.insight.why.picture import Doing, Picture, same_wait
from dap_mux.insight.why.verdict import Verdict, has_not_reached, look_at, place, ranks, suspects
from dap_mux.insight.why.waits import JOINS

NAME = "not-joined"


def find(picture: Picture) -> Verdict | None:
    """It stands still without work to do; who works may still come.

    But where the others wait in the call that all ranks begin with, any rank that is not in it is
    named: they have not begun.
    """
    begins = same_wait(picture.waiting)
    have_not_begun = begins is not None and begins.kind == JOINS
    absent = [one for one in picture.elsewhere if have_not_begun or (one.steady and not one.moves)]
    if not absent or not picture.waiting:
        return None
    return Verdict(
        NAME,
        f"{ranks(absent)} {'stands' if len(absent) == 1 else 'stand'} at"
        f" {place(absent[0].place)}{_calling(absent[0])}, and the others wait",
        suspects(absent, picture),
        has_not_reached(absent, picture),
        look_at(absent),
    )


def _calling(one: Doing) -> str:
    return f" in {one.call.text}" if one.call and one.call.text else ""
