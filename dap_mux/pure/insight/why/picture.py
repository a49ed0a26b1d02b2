"""The evidence as the verdicts look at it: what each rank does, and who waits for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

import msgspec

from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.insight.why.evidence import (
    Call,
    Evidence,
    Process,
    RankEvidence,
    Sample,
    Standing,
    Thread,
    stack_of,
)
from dap_mux.pure.insight.why.waits import JOINS, Wait, wait_of
from dap_mux.pure.insight.why.workers import is_in_loop, is_worker, longest_task, task_threads
from dap_mux.pure.rank_sets import RankId

BUSY: Final = 0.2
"""The part of a processor from which on a thread counts as at work."""
IDLE: Final = 0.05
"""That up to which a thread may look for something now and then."""
ASLEEP: Final = "S"
NAPS: Final = 5
"""From look to look. For Python's lock a thread that computes gives its processor up less often."""
RUNS: Final = "R"
GIL_LOOKS_PER_S: Final = (60, 260)
"""200 a second, fewer on a busy machine."""
EQUALLY: Final = 1.25  # the most that one of them looks as often as another
AWAITS_THREAD: Final = {"concurrent/futures/_base.py": ("result",), "threading.py": ("join",)}
ACCEPTS: Final = frozenset({"accept", "accept4"})
ENDED: Final = "exited"
GONE: Final = frozenset({"", "Z", "X"})
"""The states of processes that are no more."""
LEAVES: Final = frozenset({
    "destroy_process_group", "_exit_function", "_shutdown", "_run_exitfuncs", "Finalize",
    "_python_exit", "shutdown",
})  # fmt: skip
"""Functions that end things."""
PARTS: Final = frozenset({"close", "disconnect", "finalize"})
"""Those that end things where ranks wait for each other in them."""


@dataclass(frozen=True)
class Doing:
    """One rank. `waits`: what its main thread waited for in each sample.

    Of an engine's worker, the thread of its task takes the place of the main thread. `tasks`: in
    how many samples it had one, None where it is no such worker.
    """

    rank: RankId
    standing: Standing
    samples: Sequence[Sample]
    stacks: Sequence[Stack]
    threads: Sequence[Thread]
    waits: Sequence[Wait | None]
    processes: Sequence[Process]
    interval: float
    tasks: int | None = None

    @property
    def idle(self) -> bool:
        """Whether it is a worker that had no task at any time."""
        return self.tasks == 0

    @property
    def told(self) -> bool:
        """Whether it has said anything."""
        return bool(self.stacks)

    @property
    def stack(self) -> Stack:
        """Where its main thread is now."""
        return self.stacks[-1] if self.stacks else ()

    @property
    def thread(self) -> Thread | None:
        """Its main thread now."""
        return self.threads[-1] if self.threads else None

    @property
    def call(self) -> Call | None:
        """What its main thread calls now."""
        return self.thread.call if self.thread else None

    @property
    def place(self) -> Frame | None:
        """The innermost frame of the user's own code, or the innermost of all."""
        own = [frame for frame in self.stack if not frame.library]
        return (own or [*self.stack] or [None])[-1]  # type: ignore[list-item]

    @cached_property
    def steady(self) -> bool:
        """Whether its main thread was at the same place each time, and has not been elsewhere."""
        if len(self.stacks) < 2 or len(set(self.stacks)) > 1:
            return False
        return len({(one.switches, one.progress) for one in self.threads}) == 1

    @property
    def _at_one_place(self) -> bool:
        return len({*zip(self.stacks, (one.progress for one in self.threads), strict=True)}) == 1

    @property
    def stands(self) -> bool:
        """Whether it neither gets on nor is at work, though it is not idle."""
        return self.steady and not self.moves and not self.idle

    @cached_property
    def busy(self) -> float:
        """The part of a processor that its main thread used between the samples."""
        if len(self.threads) < 2:
            return 0.0
        used = self.threads[-1].cpu - self.threads[0].cpu
        return used / (self.interval * (len(self.threads) - 1))

    @property
    def of_a_processor(self) -> float:
        """The part of a processor that its process used between the looks."""
        first, last = self.processes[:1], self.processes[-1:]
        seconds = last[0].at - first[0].at if first else 0.0
        return (last[0].cpu - first[0].cpu) / seconds if seconds > 0 else self.busy

    @cached_property  # each rank is compared with all others
    def wait(self) -> Wait | None:
        """What it has waited for all the time, None where it has not, or has moved on."""
        if not self.waits or any(one is None for one in self.waits):
            return None
        first, last = self.waits[0], self.waits[-1]
        assert first is not None
        assert last is not None
        polled = first.number >= 0 or first.kind == JOINS  # C looks again and again
        stays = self.steady or polled or (first.result and self._at_one_place)
        return last if first.call == last.call and stays else None

    @property
    def ended(self) -> bool:
        """Whether it is no more; one whose link is lost may run on."""
        if self.standing.exit_code is not None:
            return True
        process = self.processes[-1] if self.processes else None
        if process is not None:
            return process.state in GONE
        return self.standing.state == ENDED

    @property
    def leaving(self) -> bool:
        """Whether it is on its way out: its program is over, or it is in a function that ends."""
        if self.ended:
            return False
        if self.standing.state == ENDED or (self.samples and self.samples[-1].finalizing):
            return True
        called = self.call.function.rpartition(".")[2] if self.call else ""
        if called in LEAVES or any(frame.function in LEAVES for frame in self.stack):
            return True
        return self.wait is not None and any(each.function in PARTS for each in self.stack)

    @property
    def moves(self) -> bool:
        """Whether its main thread gets on, or is at work."""
        if len(self.stacks) < 2 or self.idle:
            return False
        return not self.steady or self.busy >= BUSY or self.wants_processor

    @property
    def wants_processor(self) -> bool:
        """Whether it could run each time: others may leave it little of a processor."""
        return len(self.threads) > 1 and all(one.state == RUNS for one in self.threads)

    @property
    def counts(self) -> bool:
        """Whether numbers among its variables change, in a loop that waits for nothing else."""
        known = [one.progress for one in self.threads if one.progress]
        return len(known) == len(self.threads) and len(set(known)) > 1

    @property
    def sleeps(self) -> bool:
        """Whether its main thread sleeps in between; one that starves does not.

        It was asleep at a look, or has given up its processor often: where a debugger asks it 3
        times, a loop with `sleep(0.01)` could run at 2 of the looks in 2 of 5 jobs.
        """
        asleep = any(one.state == ASLEEP for one in self.threads)
        return self.busy < BUSY and (asleep or self.naps)

    @property
    def naps(self) -> bool:
        """Whether its main thread has given up its processor often between the looks."""
        switches = [one.switches for one in self.threads]
        return all(later - one >= NAPS for one, later in pairwise(switches)) and len(switches) > 1

    @property
    def polls(self) -> bool:
        """Whether it looks for something again and again, and sleeps in between.

        Such a loop is at the same place nearly each time; a look may fall into the time between.
        """
        if len(self.stacks) < 2 or self.steady or self.counts or any(self.waits):
            return False
        (_, there), *_ = Counter(self.stacks).most_common(1)
        return self.busy < IDLE and self.sleeps and 2 * there > len(self.stacks)

    @cached_property
    def waiting_for_gil(self) -> int:
        """How many of its threads ask for Python's global lock, and do not get it.

        They look again every 5 ms, and do nothing else (`take_gil` of CPython's ceval_gil.c), so
        all of them look equally often. Threads of Ray's that wait for something else looked 11 to
        87 times a second, and on a busy machine three of them were in these bounds.
        """
        if len(self.processes) < 2:
            return 0
        first, last = self.processes[0], self.processes[-1]
        least, most = (each * (last.at - first.at) for each in GIL_LOOKS_PER_S)
        looks = [last.switches.get(thread, 0) - count for thread, count in first.switches.items()]
        wait = [count for count in looks if 0 < least <= count <= most]
        return max(
            (sum(low <= count <= EQUALLY * low for count in wait) for low in wait), default=0
        )

    def other_end(self, socket: str) -> str:
        """Return the remote address of one of its connections, "" where it is not known."""
        return self.connections.get(socket, ("", ""))[1]

    @cached_property
    def connections(self) -> Mapping[str, tuple[str, str]]:
        """Those of its process. Linux leaves some out of a look while others come and go."""
        return {name: ends for look in self.processes for name, ends in look.connections.items()}

    @property
    def number(self) -> int:
        """Its number in torch or MPI; that of the session where neither says."""
        last = self.samples[-1].world_rank if self.samples else -1
        return last if last >= 0 else self.rank[1]


@dataclass(frozen=True)
class Picture:
    """All ranks."""

    ranks: Mapping[RankId, Doing]

    @cached_property
    def ended(self) -> Sequence[Doing]:
        """Those that are no more."""
        return [one for one in self.ranks.values() if one.ended]

    @cached_property
    def live(self) -> Sequence[Doing]:
        """The others."""
        return [one for one in self.ranks.values() if not one.ended]

    @cached_property
    def idle(self) -> Sequence[Doing]:
        """Workers without a task."""
        return [one for one in self.live if one.idle]

    @cached_property
    def waiting(self) -> Sequence[Doing]:
        """Those that have waited for other ranks all the time."""
        return [one for one in self.live if one.wait is not None]

    @property
    def awaits_results(self) -> bool:
        """Whether all that wait do so for results of tasks, which may take their time."""
        waits = [one.wait for one in self.waiting]
        return bool(waits) and all(wait is not None and wait.result for wait in waits)

    @cached_property
    def elsewhere(self) -> Sequence[Doing]:
        """Those that live, and do anything else; not workers without a task."""
        return [one for one in self.live if one.wait is None and not one.idle]

    @cached_property
    def moves(self) -> bool:
        """Whether any rank that communicates has got on."""
        return any(
            one.wait is None and any(each is not None for each in one.waits) and not one.steady
            for one in self.live
        )

    def by_number(self, number: int) -> Doing | None:
        """Return the rank that torch, MPI or the session calls so."""
        return self._numbers.get(number)

    @cached_property
    def _numbers(self) -> Mapping[int, Doing]:
        return {one.number: one for one in reversed([*self.ranks.values()])}

    def peer(self, one: Doing) -> Doing | None:
        """Return the only rank that this one waits for; None for several, or where unknown."""
        wait = one.wait
        if wait is None:
            return None
        if wait.peer >= 0:
            return self.by_number(wait.peer)
        return self._ends.get(one.other_end(wait.socket))

    @cached_property
    def _ends(self) -> Mapping[str, Doing]:
        """The ranks by their own ends of connections."""
        return {local: one for one in self.ranks.values() for local, _ in one.connections.values()}

    @cached_property
    def _by_collective(self) -> Mapping[Hashable, Sequence[Doing]]:
        """The live ranks by the collective that they wait in, None for those that are in none."""
        waits = ((one.wait, one) for one in self.live)
        return grouped((w.call if w and w.collective else None, one) for w, one in waits)

    def is_foreign(self, one: Doing, wait: Wait) -> bool:
        """Whether a connection that a rank waits for is to no rank; the ends of all are known.

        While all others are in a collective, no rank connects to one that listens; while that is
        the same of a library, none writes to a socket that this one reads.
        """
        # By collectives, which are few: comparing each rank with each took 1.1 s for 1024 ranks.
        others = {key: of for key, of in self._by_collective.items() if of != [one]}
        communicate = bool(others) and None not in others
        if wait.plain in ACCEPTS:
            return communicate
        if communicate and len(others) == 1 and wait.by_socket and not wait.collective:
            [of] = others.values()
            same = next(each.wait for each in of if each is not one)
            if same is not None and not same.by_socket:
                return True
        end = one.other_end(wait.socket)
        if wait.own:
            return end not in self._ends
        return bool(end) and end not in self._ends and all(each.processes for each in self.live)


def picture_of(evidence: Evidence) -> Picture:
    """Look at the evidence; what is malformed in it is left out."""
    by_calls = evidence.by_calls
    picture = Picture({one.rank: _doing(one, evidence.interval, by_calls) for one in evidence})
    return Picture({rank: _among_ranks(picture, one) for rank, one in picture.ranks.items()})


def _among_ranks(picture: Picture, one: Doing) -> Doing:
    """Who waits for a server that is no rank does not wait for ranks."""
    waits = [None if wait and picture.is_foreign(one, wait) else wait for wait in one.waits]
    return replace(one, waits=waits)


def _doing(told: RankEvidence, interval: float, by_calls: bool) -> Doing:
    samples: list[Sample] = []
    stacks: list[Stack] = []
    threads: list[Thread] = []
    task = longest_task(told.samples)
    tasks: int | None = None
    for sample in map(_by_calls, told.samples) if by_calls else told.samples:
        main = next((thread for thread in sample.threads if thread.main), None)
        if main is None:
            continue
        try:
            stack = stack_of(sample, main)
        except IndexError:
            continue
        if is_worker(stack):
            has_task = not is_in_loop(stack)
            if not has_task and task in (found := task_threads(sample)):
                main, stack = found[task]
                has_task = True
            tasks = (tasks or 0) + has_task
        samples.append(sample)
        stacks.append(stack)
        threads.append(main)
    waits = [
        wait_of(sample, thread, stack) or _of_its_thread(sample, thread, stack)
        for sample, thread, stack in zip(samples, threads, stacks, strict=True)
    ]
    return Doing(
        told.rank, told.standing, samples, stacks, threads, waits, told.processes, interval, tasks
    )


def _of_its_thread(sample: Sample, waiting: Thread, stack: Stack) -> Wait | None:
    """What a thread waits in, for which this one waits: of the only one that is in a collective."""
    if not any(
        frame.path.endswith(path) and frame.function in calls
        for frame in stack
        for path, calls in AWAITS_THREAD.items()
    ):
        return None
    found = []
    for each in sample.threads:
        with suppress(IndexError):
            if each is not waiting:
                wait = wait_of(sample, each, stack_of(sample, each))
                found += [wait] if wait is not None and wait.collective else []
    return found[0] if len(found) == 1 else None


def _by_calls(sample: Sample) -> Sample:
    """Return it with a rank's own record, which knows more, in place of torch's recorder."""
    return msgspec.structs.replace(sample, collectives=sample.calls or [])


def same_wait(ranks: Iterable[Doing]) -> Wait | None:
    """Return what all of them wait for, None where they differ."""
    waits = [one.wait for one in ranks]
    first = waits[0] if waits else None
    if first is None:
        return None
    return first if all(one is not None and one.call == first.call for one in waits) else None
