"""A rank is at work, and the others wait for it all the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dap_mux.insight.stack_tree import Frame, Stack
from dap_mux.insight.why.picture import Picture
from dap_mux.insight.why.verdict import Verdict, has_not_reached, place, ranks, suspects

NAME = "slow-rank"


def find(picture: Picture) -> Verdict | None:
    """Nobody else moves meanwhile."""
    slow = [one for one in picture.elsewhere if one.moves]
    if not slow or not picture.waiting or len(slow) + len(picture.waiting) < len(picture.live):
        return None
    if len(slow) >= len(picture.waiting) or picture.moves or picture.awaits_results:
        return None
    where = ", ".join(dict.fromkeys(place(frame) for frame in _lines(slow[0].stacks)))
    return Verdict(
        NAME,
        f"{ranks(slow)} {'is' if len(slow) == 1 else 'are'} at work at {where}; the others wait",
        suspects(slow, picture),
        has_not_reached(slow, picture),
        f"py-spy top, or dap-mux stacks {slow[0].rank[1]}",
    )


def _lines(stacks: Iterable[Stack]) -> Iterator[Frame]:
    for stack in stacks:
        own = [frame for frame in stack if not frame.library]
        if own:
            yield own[-1]
