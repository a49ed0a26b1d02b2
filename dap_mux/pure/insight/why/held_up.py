"""Who, of ranks that a user has let run, waits for ranks that the debugger holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dap_mux.pure.insight.why.evidence import Evidence
from dap_mux.pure.insight.why.picture import Doing, Picture, picture_of, same_wait
from dap_mux.pure.insight.why.waits import Wait
from dap_mux.pure.rank_sets import RankId, fold

UNKNOWN: Final = -1


@dataclass(frozen=True)
class Standing:
    """A rank that stands: `place` as in `train.py:102`; `ends`: at an uncaught exception."""

    place: str
    ends: bool = False


@dataclass(frozen=True)
class HeldUp:
    """`wait`: `waits in all_reduce for rank 1`; `sentence`: who does, and what lets them on."""

    waiting: tuple[RankId, ...]
    held: tuple[RankId, ...]
    wait: str
    sentence: str


def held_up(
    evidence: Evidence,
    run: Collection[RankId],
    stand: Mapping[RankId, Standing],
    default_group: str,
) -> Iterator[HeldUp]:
    """Yield those of `run` that wait for some of `stand`: who waits for the same is one of them.

    Nothing is said of a rank that may wait for others that run.
    """
    picture = picture_of(evidence)
    alike: dict[tuple[str, tuple[RankId, ...]], list[RankId]] = {}
    for one in picture.live:
        wait = one.wait
        if one.rank not in run or wait is None:
            continue
        held = _awaited(picture, one, wait, stand)
        if held:
            alike.setdefault((str(replace(wait, peer=UNKNOWN)), held), []).append(one.rank)
    for (wait_for, held), waiting in alike.items():
        yield _told(tuple(waiting), held, wait_for, stand, default_group)


def _awaited(
    picture: Picture, one: Doing, wait: Wait, stand: Mapping[RankId, Standing]
) -> tuple[RankId, ...]:
    """Return the ranks that stand and that this one waits for, () where others may be it."""
    if not wait.collective:
        peer = picture.peer(one)
        return (peer.rank,) if peer is not None and peer.rank in stand else ()
    missing = [
        other
        for other in picture.ranks.values()
        if other is not one and _takes_part(other, one, wait) and not _is_there(other, one, wait)
    ]
    held = tuple(other.rank for other in missing if other.rank in stand)
    certain = len(held) == len(missing) or wait.number != UNKNOWN
    return held if certain and not any(other.ended for other in missing) else ()


def _takes_part(other: Doing, one: Doing, wait: Wait) -> bool:
    return other.number in wait.members if wait.members else other.rank[0] == one.rank[0]


def _is_there(other: Doing, one: Doing, wait: Wait) -> bool:
    """Whether it waits in the same call, or has made it already, as torch records."""
    if other.wait is not None and same_wait([one, other]) is not None:
        return True
    known = other.samples[-1].collectives if other.samples else ()
    made = (each.number for each in known if each.group == wait.group and not each.p2p)
    return wait.number != UNKNOWN and max(made, default=UNKNOWN) >= wait.number


def _told(
    waiting: tuple[RankId, ...],
    held: tuple[RankId, ...],
    wait: str,
    stand: Mapping[RankId, Standing],
    group: str,
) -> HeldUp:
    one, alone = len(waiting) == 1, len(held) == 1
    who = f"rank{'' if one else 's'} {fold(waiting, group)}"
    awaited = f"rank{'' if alone else 's'} {fold(held, group)}"
    places = list(dict.fromkeys(stand[rank].place for rank in held if stand[rank].place))
    where = f" at {', '.join(places)}" if places else ""
    ends = any(stand[rank].ends for rank in held)
    exception = " with an uncaught exception" if ends else ""
    both = "both" if one and alone else "all"
    text = fold(held, group)
    hint = "" if ends else f"; `cast {text} n` lets {both} on"
    waits = f"wait{'s' if one else ''} in {wait} for {awaited}"
    stands = f"which stand{'s' if alone else ''}{where}{exception}"
    return HeldUp(waiting, held, f"waits in {wait} for {awaited}", f"{who} {waits}, {stands}{hint}")
