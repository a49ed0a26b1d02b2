"""Verdicts of `why` on what Ray and Dask run: tasks in workers, and drivers that wait for them."""

from __future__ import annotations

from typing import Any

from dap_mux.pure.insight.why.evidence import Evidence, RankEvidence, Sample, Thread
from dap_mux.pure.insight.why.verdicts import judge
from tests.unit.insight.judging import named, verdict
from tests.unit.insight.test_verdicts import SLEEP

RAY_FILES = [
    ("/job/train.py", False),
    ("/site-packages/ray/_private/worker.py", True),
    ("/site-packages/distributed/nanny.py", True),
    ("/site-packages/distributed/worker.py", True),
]
RAY_FUNCTIONS = ["step", "main_loop", "get", "_run", "apply_function"]
LOOP, STEP, RAY_GET, NANNY, APPLIES = (1, 1, 9), (0, 0, 5), (1, 2, 7), (2, 3, 1), (3, 4, 1)


def of_engine(*mains: tuple[tuple[int, int, int], ...], **of: Any) -> RankEvidence:
    """A process whose main thread is at these places, and whose processor is given up each time."""
    more = of.pop("more", [])
    threads = [
        [Thread("MainThread", True, [*main], switches=5 * n), *more] for n, main in enumerate(mains)
    ]
    samples = [Sample(RAY_FILES, RAY_FUNCTIONS, each) for each in threads]
    return RankEvidence(("job", 0), samples=samples)


def stands_in_task(*more: Thread) -> RankEvidence:
    main = Thread("MainThread", True, [LOOP, STEP], call=SLEEP)
    return RankEvidence(("job", 0), samples=[Sample(RAY_FILES, RAY_FUNCTIONS, [main, *more])] * 3)


IDLE = of_engine((LOOP,), (LOOP,), (LOOP,))
"""Ray's loop in C++ wakes now and then."""
DRIVER = of_engine((STEP, RAY_GET), (STEP, RAY_GET), (STEP, RAY_GET))
AT_WORK = of_engine((LOOP, STEP), (LOOP, (0, 0, 6)), (LOOP, STEP))


def test_a_task_that_stands_is_named_not_the_idle_workers() -> None:
    found = verdict(DRIVER, IDLE, stands_in_task(), IDLE)
    assert named(found) == ("not-joined", "2")
    assert found.evidence == ("rank 0 waits in ray.get at train.py:5 (step)",)
    assert verdict(IDLE, stands_in_task()).name == "undecided"
    assert verdict(DRIVER, AT_WORK, stands_in_task()).name == "not-joined"


def test_a_task_at_work_keeps_nobody_waiting_in_vain() -> None:
    assert verdict(DRIVER, AT_WORK, IDLE).name == "healthy"
    assert verdict(DRIVER, DRIVER, AT_WORK, IDLE).name == "healthy"
    polls = of_engine((LOOP, STEP), (LOOP, STEP), (LOOP, STEP))
    assert verdict(DRIVER, polls, IDLE).name == "healthy"


def test_workers_without_a_task_are_not_called_healthy() -> None:
    found = verdict(DRIVER, IDLE, IDLE)
    assert (found.name, found.sentence) == ("undecided", "ranks 1-2 have no task")


def test_a_task_of_dask_is_its_threads() -> None:
    task = Thread("Dask-Default-Threads-9-0", False, [APPLIES, STEP], tid=9)
    idle = of_engine((NANNY,), (NANNY,), (NANNY,))
    stands = of_engine((NANNY,), (NANNY,), (NANNY,), more=[task])
    assert named(verdict(DRIVER, idle, stands)) == ("not-joined", "2")
    assert verdict(DRIVER, idle, idle).name == "undecided"


def test_a_rank_of_another_group_is_named_with_it() -> None:
    ranks = {("driver", 0): DRIVER, ("Worker", 1): stands_in_task()}
    told = {rank: RankEvidence(rank, samples=one.samples) for rank, one in ranks.items()}
    found = judge(Evidence(told))
    assert found.sentence.startswith("rank Worker:1 stands at train.py:5 (step)")
    assert found.evidence[0].startswith("rank driver:0 waits in ray.get")
    assert found.next == "dap-mux console, then `attach Worker:1`"
