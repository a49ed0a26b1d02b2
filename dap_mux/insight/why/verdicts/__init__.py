"""Every verdict: one row and one function each, the most specific first.

The first that finds something is given. Exit codes of the command follow the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dap_mux.insight.why.evidence import Evidence
from dap_mux.insight.why.picture import Picture, picture_of
from dap_mux.insight.why.verdict import Verdict, place, ranks, suspects, verb, who_waits
from dap_mux.insight.why.verdicts.processes import (
    exception_held,
    gil_held,
    held_by_debugger,
    process_gone,
    process_stopped,
    teardown,
)
from dap_mux.insight.why.verdicts.waiting import (
    blocked_io,
    input_starved,
    lock_cycle,
    mismatched_collective,
    not_joined,
    p2p_cycle,
    slow_rank,
)

Find = Callable[[Picture], Verdict | None]
ORDER: Final[Mapping[str, Find]] = {
    find.__name__.replace("_", "-"): find
    for find in (
        process_gone,
        process_stopped,
        held_by_debugger,
        exception_held,
        gil_held,
        lock_cycle,
        mismatched_collective,
        p2p_cycle,
        input_starved,
        blocked_io,
        teardown,
        not_joined,
        slow_rank,
    )
}
HEALTHY: Final = "healthy"
UNDECIDED: Final = "undecided"
FIRST_CODE: Final = 10
EXIT_CODES: Final = {
    HEALTHY: 0,
    UNDECIDED: 1,
    **{name: FIRST_CODE + at for at, name in enumerate(ORDER)},
}


def judge(evidence: Evidence) -> Verdict:
    """Return the most specific verdict that holds."""
    picture = picture_of(evidence)
    for find in (*ORDER.values(), healthy):
        if (verdict := find(picture)) is not None:
            return verdict
    return _undecided(picture)


def healthy(picture: Picture) -> Verdict | None:
    """Somebody gets on, and nobody is waited for in vain.

    Every rank that tells something is at work or gets on.
    """
    told = [one for one in picture.live if one.told]
    if not told or len(told) < len(picture.live) or any(one.tasks and one.stands for one in told):
        return None
    moving = [one for one in told if one.wait is None and one.moves]
    if not moving:
        return None
    return Verdict("healthy", f"{ranks(moving)} {verb(moving, 'is', 'are')} at work")


def _undecided(picture: Picture) -> Verdict:
    silent = [one for one in picture.live if not one.told]
    if silent:
        why = silent[0].standing.problem or "no answer"
        sentence = f"{ranks(silent)}: {why}; nothing else is wrong"
    elif not picture.live:
        sentence = "no rank is attached"
    elif picture.idle and not picture.elsewhere:
        sentence = f"{ranks(picture.idle)} {verb(picture.idle, 'has', 'have')} no task"
    elif still := [one for one in picture.elsewhere if one.stands] or picture.elsewhere:
        where = f"{verb(still, 'stands', 'stand')} still at {place(still[0].place)}"
        sentence = (
            f"{ranks(still)} {where}, and nobody is known to wait for {verb(still, 'it', 'them')}"
        )
    else:
        sentence = "all ranks wait, and none of them is to blame by what is known"
    return Verdict(UNDECIDED, sentence, suspects(silent, picture), who_waits(picture))
