"""Who makes the others wait, by times of simulated jobs whose clocks differ by seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import msgspec
import pytest

from dap_mux.pure.insight.numerics.pace import ROOTED, Pace
from dap_mux.pure.insight.numerics.slow import (
    COLLECTION,
    FEWEST,
    PAUSES,
    STARVED,
    WARM_UP,
    judge,
)
from dap_mux.pure.insight.why.verdict import Verdict
from dap_mux.pure.rank_sets import RankId

STEP: Final = 40_000
"""µs of work that each rank has in a step."""
LINK: Final = 300
"""µs from the last entry of a collective to its ends, at most."""
WORK, LOADER, SEND = "train.py:30 forward", "train.py:20 load", "train.py:40 backward"
Work = Callable[[int, int], list[tuple[str, int]]]


@dataclass
class Job:
    """Ranks that work and then reduce, `buckets` times a step; `ahead`: µs of each rank's clock."""

    work: Work
    ranks: int = 4
    steps: int = 60
    buckets: int = 1
    ahead: dict[int, int] = field(default_factory=dict)
    pauses: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    starved: dict[int, int] = field(default_factory=dict)
    ran: dict[int, int] = field(default_factory=dict)
    chance: Random = field(default_factory=lambda: Random(5))

    def paces(self, open_calls: dict[int, tuple[str, str]] | None = None) -> dict[RankId, Pace]:
        """What each rank tells of it."""
        now = dict.fromkeys(range(self.ranks), 1_000_000_000)
        told = {rank: _Told(now[rank]) for rank in now}
        for step in range(self.steps):
            for rank in now:
                for place, time in self.work(rank, step):
                    now[rank] = told[rank].work(place, now[rank], time)
            for bucket in range(self.buckets):
                for rank in now:
                    time = 2_000 if bucket else 0
                    now[rank] = told[rank].work(SEND, now[rank], time)
                    told[rank].begins("all_reduce", SEND, now[rank])
                self._ends(now, told)
        for rank, (kind, line) in (open_calls or {}).items():
            told[rank].begins(kind, line, now[rank])
            told[rank].work(line, now[rank], 5_000_000)
        return {("job", rank): self._pace(rank, one) for rank, one in told.items()}

    def _ends(self, now: dict[int, int], told: dict[int, _Told]) -> None:
        entered = max(now.values())
        for rank in [*now]:
            end = entered + self.chance.randrange(LINK // 2, LINK)
            now[rank] = told[rank].work(SEND, now[rank], end - now[rank])
            told[rank].ends(end)

    def _pace(self, rank: int, told: _Told) -> Pace:
        ahead = self.ahead.get(rank, 0)
        lines, spots = _Names(), _Names()
        return Pace(
            host=f"node{ahead}",
            base=ahead,
            began=told.samples[0][0],
            ended=told.samples[-1][0],
            ran=self.ran.get(rank, 1_000_000),
            processors=4,
            groups=[("default_pg", [*range(self.ranks)])],
            kinds=["all_reduce", "barrier"],
            calls=[
                (0, ["all_reduce", "barrier"].index(kind), lines.place(line), number, began, ended)
                for number, (kind, line, began, ended) in enumerate(told.calls, 1)
            ],
            samples=[
                (at, spots.place(place), self.starved.get(rank, 0)) for at, place in told.samples
            ],
            lines=[*lines],
            spots=[_spot(each) for each in spots],
            pauses=self.pauses.get(rank, []),
        )


class _Names(dict[str, int]):
    def place(self, name: str) -> int:
        return self.setdefault(name, len(self))


def _spot(place: str) -> tuple[str, str, int, str]:
    where, _, function = place.partition(" ")
    path, _, line = where.partition(":")
    return path, function, int(line), "DataLoader.__next__" if function == "load" else ""


@dataclass
class _Told:
    began: int
    calls: list[tuple[str, str, int, int | None]] = field(default_factory=list)
    samples: list[tuple[int, str]] = field(default_factory=list)

    def work(self, place: str, now: int, time: int) -> int:
        """Be at a place for so long; it is sampled each 10 ms."""
        self.samples += [
            (at, place) for at in range(now + 9_999 - (now - 1) % 10_000, now + time, 10_000)
        ]
        return now + time

    def begins(self, kind: str, line: str, now: int) -> None:
        self.calls.append((kind, line, now, None))

    def ends(self, now: int) -> None:
        self.calls[-1] = (*self.calls[-1][:3], now)


def work(*late: int, more: int = 40_000, place: str = LOADER, every: int = 1) -> Work:
    """Ranks that take `more` at a place, in each step or some."""

    def of(rank: int, step: int) -> list[tuple[str, int]]:
        extra = more if rank in late and step % every == 0 else 0
        noise = Random(rank * 1000 + step).randrange(2_000)
        return [(place, 500 + extra), (WORK, STEP + noise)]

    return of


def verdict(job: Job) -> Verdict:
    return judge(job.paces())[0]


@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("ahead", [{}, {0: 3_000_000}, {1: -7_000_000, 0: 40_000}])
def test_the_late_rank_its_delay_and_its_place_are_found(
    ranks: int, buckets: int, ahead: dict[int, int]
) -> None:
    late = ranks - 1
    found, numbers = judge(Job(work(late), ranks, buckets=buckets, ahead=ahead).paces())
    assert found.name == "slow-rank"
    assert found.sentence.startswith(f"rank {late} is last in 100% of ")
    assert PAUSES <= 60 - numbers["collectives"] <= PAUSES + WARM_UP
    assert found.sentence.endswith(" in DataLoader.__next__ at train.py:20 (load)")
    assert numbers["delay"] == pytest.approx(0.04, abs=0.005)
    assert numbers["period"] == pytest.approx(0.081 + 0.0023 * (buckets - 1), rel=0.05)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("ahead", [{}, {1: 3_000_000}])
def test_nothing_is_said_of_a_healthy_job(ranks: int, buckets: int, ahead: dict[int, int]) -> None:
    assert verdict(Job(work(), ranks, buckets=buckets, ahead=ahead)).name == "healthy"


def test_noise_that_any_rank_may_have_is_healthy() -> None:
    chance = Random(3)

    def of(_: int, __: int) -> list[tuple[str, int]]:
        return [(WORK, STEP + chance.randrange(30_000))]

    assert verdict(Job(of, 4)).name == "healthy"
    assert verdict(Job(of, 2)).name == "healthy"


def test_one_long_pause_is_no_slow_rank_and_hides_none() -> None:
    pause = work(2, more=900_000, every=60)
    assert verdict(Job(pause)).name == "healthy"
    late = work(1)
    found = verdict(Job(lambda rank, step: [*late(rank, step), *pause(rank, step)]))
    assert found.sentence.startswith("rank 1 ")


def test_a_rank_that_is_late_each_fifth_step_is_found() -> None:
    found = verdict(Job(work(2, more=300_000, every=5)))
    assert found.sentence.startswith("rank 2 is last in ")
    assert " by 29" in found.sentence or " by 30" in found.sentence


def test_pauses_of_the_garbage_collection_are_the_place() -> None:
    job = Job(work(1, place=WORK))
    early = job.paces()["job", 1]
    job.pauses = {1: [(began - 39_000, began - 1_000) for *_, began, _ in early.calls]}
    job.chance = Random(5)
    assert f"in {COLLECTION} at train.py:30 (forward)" in verdict(job).sentence


@pytest.mark.parametrize(("more", "name"), [(80_000, "slow-rank"), (30_000, "healthy")])
def test_a_rank_without_a_processor_is_slow_only_if_it_is_by_much(more: int, name: str) -> None:
    job = Job(work(2, more=more, place=WORK), starved={2: 10_000 * more // (STEP + more)})
    found = verdict(job)
    assert found.name == name
    assert (STARVED in found.sentence) is (name == "slow-rank")


def test_a_rank_with_more_work_may_lack_a_processor_more_often() -> None:
    job = Job(work(2, place=WORK), starved={2: 5_000}, ran={2: 2_000_000})
    assert verdict(job).sentence.endswith(": at train.py:30 (forward)")


def test_a_rank_that_is_slower_at_all_places_is_said_to_be_that() -> None:
    def of(rank: int, _: int) -> list[tuple[str, int]]:
        time = 30_000 if rank == 3 else 15_000
        return [(f"train.py:{line} f{line}", time) for line in (30, 31, 32)]

    assert ": it is slower in all that it does, most at train.py:3" in verdict(Job(of)).sentence


def test_a_rank_that_has_left_the_loop_is_named_with_where_it_waits() -> None:
    waits = {0: ("all_reduce", SEND), 1: ("barrier", "train.py:60 main"), 2: ("all_reduce", SEND)}
    found, _ = judge(Job(work(), 3).paces(waits))
    assert found.name == "not-joined"
    assert found.sentence == (
        "rank 1 has left the loop after 60 calls of all_reduce at train.py:40 (backward): "
        "it waits in barrier at train.py:60 (main)"
    )


def test_a_root_that_another_rank_has_kept_is_not_the_last() -> None:
    """As of gloo's broadcast: its root waits for rank 2, when the others have been let go."""
    calls: dict[int, list[tuple[int, int, int, int, int, int | None]]] = {
        rank: [] for rank in range(4)
    }
    for step in range(1, 60, 2):
        now = step * 100_000
        late = now + 80_000
        enters = [(now, late + 9), (now, now + 900), (late, late + 9), (now, now + 900)]
        then = [late + 900, now + 1_500, late + 300, now + 1_500]
        for rank, (entered, left) in enumerate(enters):
            calls[rank].append((0, 0, 0, step, entered, left))
            calls[rank].append((0, 1, 1, step + 1, then[rank], late + 1_200))
    lists: dict[str, Any] = {
        "kinds": ["broadcast", "all_reduce"],
        "lines": ["a.py:1 f", "a.py:2 f"],
    }
    groups = [("default_pg", [*range(4)])]
    paces = {("job", rank): Pace(calls=calls[rank], groups=groups, **lists) for rank in calls}
    assert judge(paces)[0].sentence.startswith("rank 2 is last in 100% of ")


def test_ranks_that_have_told_nothing_may_be_the_slow_ones() -> None:
    paces = Job(work(1)).paces()
    del paces["job", 3]
    found = judge(paces)[0]
    assert found.name == "undecided"
    assert found.sentence.startswith("only 3 of the 4 ranks of group default_pg have told ")


def test_too_few_collectives_tell_nothing() -> None:
    found = verdict(Job(work(1), steps=FEWEST + WARM_UP - 1))
    assert found.name == "undecided"
    assert f"have had {FEWEST + WARM_UP - 1} collectives in common: " in found.sentence


def of_rank(pace: Pace, changes: Iterable[tuple[str, object]]) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(pace), **dict(changes)})


@pytest.mark.parametrize(
    "change",
    [
        ("calls", [(0, 0, 9, 1, 1, 2)]),
        ("calls", [(0, 2, 0, 1, 1, 2)]),
        ("calls", [(-1, 0, 0, 1, 1, 2)]),
        ("samples", [(1, 99, 0)]),
        ("host", 3),
    ],
)
def test_a_hostile_answer_is_malformed(change: tuple[str, object]) -> None:
    pace = Job(work()).paces()["job", 0]
    msgspec.json.decode(of_rank(pace, ()), type=Pace)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(of_rank(pace, [change]), type=Pace)


@pytest.mark.parametrize("kind", ["broadcast", "Bcast", "gather", "Igatherv", "Ireduce", "Exscan"])
def test_a_kind_whose_ranks_may_leave_early_aligns_no_clocks(kind: str) -> None:
    assert ROOTED.fullmatch(kind)
    assert not ROOTED.fullmatch("all" + kind)
