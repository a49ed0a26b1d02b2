"""Ranks of one group wait in different collectives, or in one with different data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import Verdict, ranks, suspects, who_waits
from dap_mux.insight.why.waits import Wait

NAME = "mismatched-collective"
Describe = Callable[[Doing], tuple[str, Hashable]]
"""Words for what a rank does, and what must be the same in all."""


def find(picture: Picture) -> Verdict | None:
    """The few are taken for the culprits; of two halves, the one that is behind."""
    groups: dict[str, list[Doing]] = {}
    for one in picture.waiting:
        if one.wait is not None and one.wait.collective:
            groups.setdefault(one.wait.group, []).append(one)
    if len(groups) > 1:
        return _two_groups(groups, picture)
    for members in groups.values():
        for describe in (_kind, _shape, _dtype, _order):
            parted = _parted(members, describe)
            if parted is not None:
                return _verdict(describe(parted[0]), parted, members, picture)
    return None


def _kind(one: Doing) -> tuple[str, Hashable]:
    assert one.wait is not None
    return f"calls {one.wait}", one.wait.plain


def _shape(one: Doing) -> tuple[str, Hashable]:
    assert one.wait is not None
    return f"calls {one.wait} with sizes {_sizes(one.wait)}", one.wait.sizes


def _dtype(one: Doing) -> tuple[str, Hashable]:
    assert one.wait is not None
    return f"calls {one.wait} with {', '.join(one.wait.dtypes)}", one.wait.dtypes


def _order(one: Doing) -> tuple[str, Hashable]:
    assert one.wait is not None
    return f"is at {one.wait}", one.wait.number


def _sizes(wait: Wait) -> str:
    return ", ".join(str(list(each)) for each in wait.sizes) or "none"


def _parted(members: Sequence[Doing], describe: Describe) -> list[Doing] | None:
    """Return those that differ from most, None where all are alike."""
    keys = {one.rank: describe(one)[1] for one in members}
    counted = Counter(keys.values()).most_common()
    if len(counted) < 2:
        return None
    most = counted[0][0]
    if counted[0][1] == counted[1][1]:  # two halves: those behind
        most = max((one.wait.number, keys[one.rank]) for one in members if one.wait)[1]
    return [one for one in members if keys[one.rank] != most]


def _verdict(
    words: tuple[str, Hashable],
    culprits: Sequence[Doing],
    members: Sequence[Doing],
    picture: Picture,
) -> Verdict:
    others = [one for one in members if one not in culprits]
    theirs = others[0].wait if others else None
    return Verdict(
        NAME,
        f"{ranks(culprits)}: {words[0]} where {ranks(others)} wait in {theirs}",
        suspects(culprits, picture),
        who_waits(picture),
        f"compare the code at both places: dap-mux stacks {ranks(members).partition(' ')[2]}",
    )


def _two_groups(groups: Mapping[str, Sequence[Doing]], picture: Picture) -> Verdict | None:
    """A deadlock of groups: ranks of a group wait in another one."""
    if not picture.elsewhere and all(_is_incomplete(of) for of in groups.values()):
        few = min(groups.values(), key=len)
        return Verdict(
            NAME,
            f"{ranks(few)} wait in {few[0].wait} while other members of that group wait elsewhere",
            suspects(few, picture),
            who_waits(picture),
            "give all ranks the same order of groups",
        )
    return None


def _is_incomplete(of: Sequence[Doing]) -> bool:
    members = of[0].wait.members if of[0].wait else ()
    return bool(members) and {one.number for one in of} < set(members)
