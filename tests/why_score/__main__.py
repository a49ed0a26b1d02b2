"""`python -m tests.why_score [--runs N] [--job J] [--fault F] [--page]`: how often `why` is right.

Each fault of each job runs N times (6 by default), and each healthy job twice as often; what is in
build/why-score.jsonl already is not run again. `--page` writes the sum into docs/why.md
and prints the table. The exit code is 1 if it was right too seldom.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.why_score import page
from tests.why_score.kinds import KINDS, is_healthy
from tests.why_score.ranks import ROOT, Parents, jobs
from tests.why_score.results import Plan, Result, Results, without_those_there
from tests.why_score.runner import run
from tests.why_score.score import Score

RUNS: Final = 6
HEALTHY_RUNS: Final = 2  # as many as of a fault
SIZE: Final = 4
MANY: Final = 64
SIDE_BY_SIDE: Final = 2
GONE: Final = ("killed", "exits", "exit-hook", "out-of-memory", "wrong-shape", "wrong-dtype")
"""Who attaches later finds nothing of the rank."""
OPTIONS: Final = argparse.ArgumentParser(prog="python -m tests.why_score", description=__doc__)
OPTIONS.add_argument("--runs", type=int, default=RUNS)
OPTIONS.add_argument("--job", choices=("socket", "gloo", "mpi"))
OPTIONS.add_argument("--fault", choices=sorted(KINDS))
OPTIONS.add_argument("--results", type=Path, default=ROOT / "build" / "why-score.jsonl")
OPTIONS.add_argument("--page", action="store_true")


def engines() -> Path:
    """The folder where `tests/launchers/install` leaves what it installs."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "dap-mux" / "engines"


def plans(runs: int) -> Iterator[Plan]:
    """All runs: one of each first, then one of each again."""
    for number in range(HEALTHY_RUNS * runs):
        for fault, kind in KINDS.items():
            if number < runs or is_healthy(fault):
                yield from (plan(job, fault, number) for job in kind.jobs)
    yield from (plan("socket", "skipped", runs + number, size=MANY) for number in range(runs))


def plan(job: str, fault: str, number: int, *, size: int = SIZE) -> Plan:
    """One run, which is the same whenever it is drawn."""
    drawn = random.Random(f"{job}/{fault}/{number}")
    return Plan(
        job,
        fault,
        number,
        rank=drawn.randrange(size),
        step=drawn.randrange(2, 6),
        size=size,
        late=number % 3 == 1 and fault not in GONE,
        alone=number % 6 == 5,
    )


async def score(wanted: Sequence[Plan], kept: Results) -> None:
    """Carry out what has not been, some at a time; of many ranks one, for it is timed."""
    there, parents = jobs(engines()), Parents()

    async def work(plans: Iterator[Plan]) -> None:
        for one in plans:
            result = await run(one, there[one.job], parents)
            kept.add(result)
            print(_line(result), flush=True)

    small = iter([one for one in wanted if one.size < MANY])
    try:
        await asyncio.gather(*(work(small) for _ in range(SIDE_BY_SIDE)))
        await work(one for one in wanted if one.size >= MANY)
    finally:
        await parents.close()


def _line(result: Result) -> str:
    if result.not_run:
        return f"{result.name}: not run: {result.not_run}"
    right = "right" if result.right else "WRONG"
    named = f"{result.verdict} {result.ranks}".strip()
    return f"{result.name}: {right}: {named} (rank {result.rank}), {result.seconds:.1f} s"


def main(words: Sequence[str]) -> int:
    """Score, and tell."""
    options = OPTIONS.parse_args(words)
    kept = Results(options.results)
    wanted = [
        one
        for one in plans(options.runs)
        if options.job in (None, one.job) and options.fault in (None, one.fault)
    ]
    asyncio.run(score(without_those_there(wanted, kept), kept))
    names = {one.name for one in wanted}
    total = Score([result for result in kept if result.name in names])
    print(total.sentence())
    if options.page:
        page.write(total)
    return 0 if total.held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
