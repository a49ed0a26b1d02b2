"""A rank is on its way out while others still wait for it."""

from __future__ import annotations

from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import (
    Verdict,
    has_not_reached,
    look_at,
    place,
    ranks,
    suspects,
    verb,
)

NAME = "teardown"


def find(picture: Picture) -> Verdict | None:
    """It counts if all the others wait, or are no more: whoever works may come to its end too."""
    ending = [one for one in picture.live if one.leaving]
    others = [one for one in picture.live if one not in ending]
    if not ending or any(one.wait is None for one in others):
        return None
    if not others and not (picture.ended and all(map(_stays, ending))):
        return None
    return Verdict(
        NAME,
        f"{ranks(ending)} {verb(ending, 'is', 'are')} ending{_where(ending[0])}",
        suspects(ending, picture),
        has_not_reached(ending, picture),
        _look_at(ending),
    )


def _stays(one: Doing) -> bool:
    """Whether it does nothing: to end takes its time, too."""
    if one.told:
        return one.steady
    used = {process.cpu for process in one.processes}
    return len(one.processes) > 1 and len(used) == 1


def _look_at(ending: list[Doing]) -> str:
    """Its debugger is gone with its program, so it is looked at from outside."""
    outside = [one.processes[-1].pid for one in ending if not one.told and one.processes]
    return f"dap-mux stacks pid:{','.join(map(str, outside))}" if outside else look_at(ending)


def _where(one: Doing) -> str:
    return f", at {place(one.place)}" if one.told else ": its program is over, its process is not"
