"""A rank does not take part in what the others wait for, and does not move."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.insight.stack_tree import Stack
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
    absent = [one for one in picture.elsewhere if have_not_begun or one.stands]
    polling = [one for one in picture.elsewhere if one.polls and one not in absent]
    if len(absent) + len(polling) == len(picture.elsewhere) and not picture.awaits_results:
        absent = [*absent, *_apart(polling, absent, picture)]
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


def _apart(polling: Sequence[Doing], absent: Sequence[Doing], picture: Picture) -> list[Doing]:
    """Those that have parted from the waiting ones as early as any: others are in the same call."""
    shared = {one.rank: _shared(one, picture) for one in (*polling, *absent)}
    return [one for one in polling if shared[one.rank] == min(shared.values())]


def _shared(one: Doing, picture: Picture) -> int:
    """How many of the outermost frames it has in common with a rank that waits."""
    return max((_in_common(one.stack, other.stack) for other in picture.waiting), default=0)


def _in_common(left: Stack, right: Stack) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))


def _calling(one: Doing) -> str:
    return f" in {one.call.text}" if one.call and one.call.text else ""
