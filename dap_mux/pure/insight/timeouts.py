"""Time limits that can end a paused job: those of torch's collectives and of the scheduler.

A rank reports them by `injected.timeout_probe`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from dap_mux.pure.grouping import grouped
from dap_mux.pure.rank_sets import RankId, fold

RAISED_TIMEOUT_S: Final = 24 * 3600  # of a collective while ranks are stopped


class Collective(msgspec.Struct, frozen=True, array_like=True):
    """A collective under way in a rank, in seconds. `limit`, `age` None: unknown to torch."""

    name: str
    limit: float | None = None
    age: float | None = None

    @property
    def left(self) -> float | None:
        """Seconds until it fails."""
        return None if self.limit is None or self.age is None else self.limit - self.age


class TimeoutReport(msgspec.Struct, frozen=True):
    """A rank's report. `before`: the old values (s) of the time-outs that were raised just now.

    `waiting`: collectives under way; `problem`: why a time-out cannot be raised. `job`: SLURM's
    job id, `left`: the seconds until SLURM ends that job; `elastic`: torchrun has started it.
    """

    before: list[float] = []
    waiting: list[Collective] = []
    problem: str = ""
    job: str = ""
    left: float | None = None
    elastic: bool = False


def read_report(result: object) -> TimeoutReport:
    """Decode a report. Raises ValueError if it is malformed: ranks are not trusted."""
    return msgspec.json.decode(str(result), type=TimeoutReport)


# Warnings for users about time limits that can end a job while its ranks are stopped.

URGENT_S: Final = 300.0  # the user must act now if less is left
_JUST_BEGUN_S: Final = 1.0  # a younger collective may be over before the warning is read
_UNLIMITED_S: Final = (
    RAISED_TIMEOUT_S / 2
)  # more is left only where the time-out was raised, or as long
_MINUTE, _HOUR = 60, 3600


class TimeoutWarning(Struct, frozen=True):
    """`kind` is `collective`, `slurm` or `problem`; `left`: s until the job ends, if known."""

    kind: str
    text: str
    ranks: tuple[RankId, ...]
    left: float | None = None

    @property
    def urgent(self) -> bool:
        """Whether there is little time left."""
        return self.left is not None and self.left < URGENT_S


def timeout_warnings(
    told: Mapping[RankId, TimeoutReport], default_group: str
) -> list[TimeoutWarning]:
    """Return a warning for each limit that the ranks report."""
    return [
        *_collectives(told, default_group),
        *_schedulers(told, default_group),
        *_problems(told, default_group),
    ]


def extension(told: Mapping[RankId, TimeoutReport], default_group: str) -> str:
    """Return a text that says whose time-outs were raised just now, "" if none were."""
    changed = [rank for rank, one in told.items() if one.before]
    if not changed:
        return ""
    before = sorted({seconds for one in told.values() for seconds in one.before})
    return (
        f"while ranks are stopped, torch's timeouts ({', '.join(map(duration, before))}) are "
        f"raised to {duration(RAISED_TIMEOUT_S)} {_on(changed, default_group)}, "
        "until all ranks run on"
    )


def _collectives(
    told: Mapping[RankId, TimeoutReport], default_group: str
) -> Iterable[TimeoutWarning]:
    endangered = {
        rank: one
        for rank, report in told.items()
        if (one := min(filter(_lasts, report.waiting), key=_left, default=None))
    }
    elastic = any(one.elastic for one in told.values())
    for name, ranks in grouped((one.name, rank) for rank, one in endangered.items()).items():
        left = min(_left(endangered[rank]) for rank in ranks)
        known = left < _UNLIMITED_S
        limit = endangered[min(ranks, key=lambda rank: _left(endangered[rank]))].limit
        time = f"it fails in {duration(left)}" if known else "torch does not say when it will fail"
        began = f" of {duration(limit)}" if limit is not None else ""
        text = (
            f"{_named(ranks, default_group)} in {name}, whose timeout{began} can no longer be "
            f"raised: {time} unless the stopped ranks run on"
        )
        text += ", and torchrun then ends all ranks" if elastic else ""
        yield TimeoutWarning("collective", text, tuple(ranks), left if known else None)


def _lasts(one: Collective) -> bool:
    return (one.age is None or one.age >= _JUST_BEGUN_S) and (
        one.left is None or one.left < _UNLIMITED_S
    )


def _left(one: Collective) -> float:
    return _UNLIMITED_S if one.left is None else one.left


def _schedulers(
    told: Mapping[RankId, TimeoutReport], default_group: str
) -> Iterable[TimeoutWarning]:
    limited = {rank: one for rank, one in told.items() if one.job}
    for job, ranks in grouped((one.job, rank) for rank, one in limited.items()).items():
        times = [one.left for rank in ranks if (one := limited[rank]).left is not None]
        others = "" if len(ranks) == len(told) else f" ({_on(ranks, default_group)})"
        left = min(times, default=None)
        text = f"SLURM's time limit of job {job}{others} keeps running while ranks are paused"
        if left is None:  # older releases of SLURM do not tell the job its limit
            text += f"; to see the time left: squeue -h -j {job} -o %L"
        else:
            text += f": it ends the job in {duration(left)}"
        yield TimeoutWarning("slurm", text, tuple(ranks), left)


def _problems(told: Mapping[RankId, TimeoutReport], default_group: str) -> Iterable[TimeoutWarning]:
    wrong = grouped((one.problem, rank) for rank, one in told.items() if one.problem)
    for problem, ranks in wrong.items():
        text = f"torch's timeouts cannot be raised {_on(ranks, default_group)}: {problem}"
        yield TimeoutWarning("problem", text, tuple(ranks))


def _on(ranks: Iterable[RankId], default_group: str) -> str:
    named = list(ranks)
    return f"on rank{'s' if len(named) > 1 else ''} {fold(named, default_group)}"


def _named(ranks: list[RankId], default_group: str) -> str:
    several = len(ranks) > 1
    return f"rank{'s' if several else ''} {fold(ranks, default_group)} wait{'' if several else 's'}"


def duration(seconds: float) -> str:
    """Format a time: 45 s, 10 min, 2 h 10 min."""
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole} s"
    hours, minutes = divmod(whole // _MINUTE, _HOUR // _MINUTE)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
