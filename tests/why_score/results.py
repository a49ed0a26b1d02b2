"""What `why` said in each run: kept as JSON lines, so that a score can be continued."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.why.verdicts import EXIT_CODES
from dap_mux.pure.rank_sets import World, parse
from tests.why_score.kinds import KINDS, Kind, is_healthy


@dataclass(frozen=True)
class Plan:
    """One run: a fault of a rank of a job at a step; `number` tells repetitions apart.

    `late`: the session begins when the job hangs already. `alone`: no rank is forked.
    """

    job: str
    fault: str
    number: int
    rank: int
    step: int
    size: int
    late: bool = False
    alone: bool = False

    @property
    def name(self) -> str:
        """Return what this run is known by."""
        return f"{self.job}/{self.fault}/{self.number}"


@dataclass(frozen=True)
class Result:
    """What `why` said. `not_run`: why there was nothing to ask about."""

    name: str
    job: str
    fault: str
    rank: int
    size: int
    late: bool
    verdict: str = ""
    ranks: str = ""
    code: int = -1
    seconds: float = 0.0
    right_cause: bool = False
    right_rank: bool = False
    said: str = ""
    not_run: str = ""

    @property
    def right(self) -> bool:
        """Whether cause and rank are right."""
        return self.right_cause and self.right_rank

    @property
    def false_alarm(self) -> bool:
        """Whether a healthy job was called anything but that or undecided."""
        return is_healthy(self.fault) and self.verdict not in ("healthy", "undecided")


def judged(plan: Plan, body: dict[str, Any], code: int, seconds: float) -> Result:
    """Judge an answer."""
    kind = KINDS[plan.fault]
    verdict = str(body.get("verdict", ""))
    suspects = [str(suspect["ranks"]) for suspect in body.get("suspects", ())]
    return Result(
        **_of(plan),
        verdict=verdict,
        ranks="; ".join(suspects),
        code=code,
        seconds=round(seconds, 3),
        right_cause=verdict in kind.verdicts and code == EXIT_CODES[verdict],
        right_rank=_named(kind, plan, suspects),
        said=str(body.get("sentence", "")),
    )


def _named(kind: Kind, plan: Plan, suspects: Sequence[str]) -> bool:
    """Whether the first suspect is right, or the first ones where several ranks are meant."""
    culprits = kind.culprits(plan.rank, plan.size)
    if not suspects:
        return frozenset() in culprits
    counted = suspects if kind.several else suspects[:1]
    named = [ranks_of(text, plan.size) for text in counted]
    return any(ranks in culprits for ranks in accumulate(named, lambda one, more: one | more))


def skipped(plan: Plan, why: str) -> Result:
    """Return the result of a run that could not be."""
    return Result(**_of(plan), not_run=why)


def _of(plan: Plan) -> dict[str, Any]:
    same = ("job", "fault", "rank", "size", "late")
    return {"name": plan.name, **{name: getattr(plan, name) for name in same}}


def ranks_of(text: str, size: int) -> frozenset[int]:
    """Return the ranks of a rank set, none of what is none."""
    world = World(tuple(("job", rank) for rank in range(size)), {}, {}, {})
    try:
        return frozenset(rank for _, rank in parse(text).select(world))
    except DapMuxError:
        return frozenset()


def lines_in(path: Path) -> list[dict[str, Any]]:
    """Return what a file has, of which each line is JSON."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def keep(path: Path, *found: dict[str, Any]) -> None:
    """Add lines to such a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(one)}\n" for one in found)


class Results:
    """A file of results, which grows by the line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Result]:
        """Yield those that are there, the newest of each run."""
        results = (Result(**one) for one in lines_in(self.path))
        yield from {result.name: result for result in results}.values()

    def add(self, result: Result) -> None:
        """Keep one."""
        keep(self.path, asdict(result))


def without_those_there(plans: Iterable[Plan], results: Iterable[Result]) -> list[Plan]:
    """Return the plans that have no result yet; what could not be run may be possible now."""
    there = {result.name for result in results if not result.not_run}
    return [plan for plan in plans if plan.name not in there]
