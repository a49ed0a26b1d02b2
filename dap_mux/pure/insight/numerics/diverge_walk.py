"""Follows a value that differs in two ranks, or two runs, back to where the difference began."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from dap_mux.pure.insight.numerics.diverge_trace import AGREE, Call, Op, RankTrace

MOST_WALKED: Final = 50_000


class Root(Struct, frozen=True):
    """Where a difference began. `a`, `b`: the lines of both traces, None where one has none.

    `what`: `own` (equal inputs, other outputs), `random` (the same, of chance), `source` (a value
    that no line has made: `a` and `b` use it), `extra` (one of them computes more), `paths` (each
    has made it otherwise), `parameter` (`a` and `b` use their own of it, as of shards), `group`
    (calls that are not one), `call` (one whose outputs should be equal) or `entry` (what differs
    meets what is equal). `used`: the lines of both that use what these make, of `paths`.
    """

    what: str
    a: int | None
    b: int | None
    used: tuple[int, int] | None = None

    @property
    def at(self) -> int:
        """The line in the first trace that has it, to order by."""
        return self.a if self.a is not None else self.b or 0


def roots(
    a: RankTrace, b: RankTrace, values: tuple[str, str], until: tuple[int, int], of: str
) -> list[Root]:
    """Return where a difference of two values began, what is nearest to them first.

    `of`: the name of the parameter that they are of.
    """
    found: dict[Root, None] = {}
    left = deque([(values, until)])
    seen: set[object] = set()
    while left and len(seen) < MOST_WALKED:
        (mine, others), (at, other_at) = left.popleft()
        makers = a.maker(mine, at), b.maker(others, other_at)
        shards = a.parameters.get(mine, of)
        if shards != of and shards == b.parameters.get(others):
            found[Root("parameter", at, other_at)] = None
            continue
        root = _root(a, b, (mine, others), makers, (at, other_at))
        if root is not None:
            used = (at, other_at) if root.what == "paths" else None
            found[Root(root.what, root.a, root.b, used)] = None
            continue
        pairs = [*_differing(a, b, makers)]
        if makers[0] is not None and len(pairs) < len(a.lines[makers[0]].uses):  # type: ignore[union-attr]
            found[Root("entry", *makers)] = None
        for pair in pairs:
            if (pair, makers) not in seen:
                seen.add((pair, makers))
                left.append((pair, (makers[0] or 0, makers[1] or 0)))
    return [*found]


def _root(
    a: RankTrace,
    b: RankTrace,
    values: tuple[str, str],
    makers: tuple[int | None, int | None],
    users: tuple[int, int],
) -> Root | None:
    """Return the root that two makers are; None for what only computes with other inputs."""
    mine, others = (
        trace.lines[at] if at is not None else None
        for trace, at in zip((a, b), makers, strict=True)
    )
    if mine is None and others is None:
        return Root("source", *users)
    for value, at, line, extra in (
        (values[0], makers[1], others, (None, makers[1])),
        (values[1], makers[0], mine, (makers[0], None)),
    ):
        if at is not None and isinstance(line, Op) and value in line.uses:
            return Root("extra", *extra)
    if isinstance(mine, Call) and isinstance(others, Call):
        if (mine.name, mine.group, mine.number) != (others.name, others.group, others.number):
            return Root("group", *makers)
        return Root("call" if mine.name in AGREE else "source", *makers)
    return _root_of_operations(mine, others, makers)


def _root_of_operations(
    mine: object, others: object, makers: tuple[int | None, int | None]
) -> Root | None:
    if not (isinstance(mine, Op) and isinstance(others, Op)):
        return Root("paths", *makers)
    if mine.name != others.name or len(mine.uses) != len(others.uses):
        return Root("paths", *makers)
    if mine.uses == others.uses:
        return Root("random" if mine.random else "own", *makers)
    return None


def _differing(
    a: RankTrace, b: RankTrace, makers: tuple[int | None, int | None]
) -> Iterator[tuple[str, str]]:
    if makers[0] is None or makers[1] is None:
        return
    mine, others = a.lines[makers[0]], b.lines[makers[1]]
    if isinstance(mine, Op) and isinstance(others, Op):
        yield from (pair for pair in zip(mine.uses, others.uses, strict=True) if pair[0] != pair[1])
