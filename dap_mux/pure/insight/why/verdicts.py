"""Every verdict: one row and one function each, the most specific first; see `ORDER`.

Here are those about a process that has ended, is ending, was stopped, or is held by a debugger, an
exception or C; in `mismatches` and `waiting` those about ranks that wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.why.evidence import Evidence
from dap_mux.pure.insight.why.mismatches import mismatched_collective, p2p_cycle
from dap_mux.pure.insight.why.picture import BUSY, Doing, Picture, picture_of
from dap_mux.pure.insight.why.verdict import (
    Verdict,
    busy_with,
    calling,
    has_not_reached,
    look_at,
    place,
    ranks,
    suspects,
    verb,
    who_waits,
)
from dap_mux.pure.insight.why.waiting import (
    blocked_io,
    input_starved,
    lock_cycle,
    not_joined,
    slow_rank,
)
from dap_mux.pure.insight.why.waits import JOINS

SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM",
}  # fmt: skip
"""As Linux numbers them."""


def process_gone(picture: Picture) -> Verdict | None:
    """A rank's process has ended while others still run.

    It counts if it ended badly, or if somebody waits.
    """
    gone = picture.ended
    bad = [one for one in gone if one.standing.exit_code or _ran_out_of_memory(one)]
    if not gone or not picture.live or not (bad or _others_wait(picture)):
        return None
    culprits = [*bad, *(one for one in gone if one not in bad)]
    return Verdict(
        f"{ranks(culprits[:1])} {_how(culprits[0])}",
        suspects(culprits, picture),
        (*(f"{ranks([one])} {_how(one)}" for one in culprits[1:]), *who_waits(picture)),
        "look at the rank's last output, then end the job: the others wait for ever",
    )


def _others_wait(picture: Picture) -> bool:
    """Whether somebody waits for ranks, or all that are left look for something without end."""
    waits = bool(picture.waiting) and not picture.awaits_results
    return waits or all(one.polls for one in picture.live)


def _how(one: Doing) -> str:
    code = one.standing.exit_code
    if _ran_out_of_memory(one):
        return "was killed by the kernel: out of memory"
    if code is None:
        return f"is gone: {one.standing.problem or 'its process has ended'}"
    if code < 0:
        return f"was killed by {SIGNALS.get(-code, f'signal {-code}')}"
    return f"has ended with exit code {code}" if code else "has ended, without an error"


def _ran_out_of_memory(one: Doing) -> bool:
    return any(process.out_of_memory for process in one.processes)


STOPPED = frozenset("Tt")


def process_stopped(picture: Picture) -> Verdict | None:
    """A rank's process is stopped by a signal, as by Ctrl-Z or `kill -STOP`.

    The system says so; a tracer's stop looks alike (`t`).
    """
    stopped = [one for one in picture.live if one.processes and one.processes[-1].state in STOPPED]
    if not stopped:
        return None
    pids = " ".join(str(one.processes[-1].pid) for one in stopped)
    traced = all(one.processes[-1].state == "t" for one in stopped)
    by = "another debugger holds it" if traced else "a signal has stopped it (SIGSTOP, Ctrl-Z)"
    return Verdict(
        f"the process of {ranks(stopped)} {verb(stopped, 'is', 'are')} stopped: {by}",
        suspects(stopped, picture),
        who_waits(picture),
        f"kill -CONT {pids}" if not traced else "",
    )


def teardown(picture: Picture) -> Verdict | None:
    """A rank is on its way out while others still wait for it.

    It counts if all the others wait, or are no more: whoever works may come to its end too.
    """
    ending = [one for one in picture.live if one.leaving]
    others = [one for one in picture.live if one not in ending]
    if not ending or any(one.wait is None for one in others):
        return None
    if not others and not (picture.ended and all(map(_stays, ending))):
        return None
    return Verdict(
        f"{ranks(ending)} {verb(ending, 'is', 'are')} ending{_where(ending[0])}",
        suspects(ending, picture),
        has_not_reached(ending, picture),
        _look_at(ending),
    )


def _stays(one: Doing) -> bool:
    """Whether it does nothing: to end takes its time, too."""
    if one.told:
        return one.steady
    return len(one.processes) > 1 and one.of_a_processor < BUSY  # torch's other threads stir


def _look_at(ending: list[Doing]) -> str:
    """Its debugger is gone with its program, so it is looked at from outside."""
    outside = [one.processes[-1].pid for one in ending if not one.told and one.processes]
    return f"dap-mux stacks pid:{','.join(map(str, outside))}" if outside else look_at(ending)


def _where(one: Doing) -> str:
    return f", at {place(one.place)}" if one.told else ": its program is over, its process is not"


PROMPTS = frozenset({("pdb.py", "interaction"), ("pdb.py", "_cmdloop"), ("bdb.py", "user_line")})


def held_by_debugger(picture: Picture) -> Verdict | None:
    """A rank stands in a debugger: ours, or a pdb that waits for a line.

    All that stand, but of an exception only those that it holds; the others may wait for them or
    run. To continue a rank from an uncaught exception would end it.
    """
    at_breakpoint = [one for one in picture.live if one.standing.breakpoint]
    if at_breakpoint:
        return _held_by_breakpoint(at_breakpoint, picture)
    held = [one for one in picture.live if _holder(one)]
    if not held:
        return None
    failed = [one for one in held if one.standing.stop.startswith("exception")]
    held = failed or held
    where = f" at {place(held[0].place)}" if held[0].place else ""
    stands = verb(held, "stands", "stand")
    numbers = ",".join(str(one.rank[1]) for one in held)
    return Verdict(
        f"{ranks(held)} {stands} in {_holder(held[0])}{where}",
        suspects(held, picture),
        who_waits(picture, held),
        f"cast {numbers} {'p __exception__' if failed else 'c'}",
    )


def _held_by_breakpoint(held: list[Doing], picture: Picture) -> Verdict:
    """A breakpoint that waits for other ranks: it may wait for ever, as they may have passed it."""
    standing = held[0].standing
    there = [one for one in held if one.standing.breakpoint == standing.breakpoint]
    awaited = [picture.ranks[each] for each in standing.awaited if each in picture.ranks]
    waits = f", which waits for {ranks(awaited)}" if awaited else ""
    numbers = ",".join(str(one.rank[1]) for one in there)
    them = verb(there, "it", "them")
    return Verdict(
        f"{ranks(there)} {verb(there, 'is', 'are')} held by your {standing.breakpoint}{waits}; "
        f"remove it, or let {them} run on",
        suspects(there, picture),
        who_waits(picture, there),
        f"cast {numbers} c",
    )


def _holder(one: Doing) -> str:
    if one.standing.stop:
        return f"the debugger ({one.standing.stop})"
    names = {(frame.path.rpartition("/")[2], frame.function) for frame in one.stack}
    return "pdb, which waits for a line" if names & PROMPTS else ""


def exception_held(picture: Picture) -> Verdict | None:
    """A rank has an exception in hand, and does not get out of the code that handles it.

    It counts if it stands still there while others wait.
    """
    held = [
        one for one in picture.live if one.thread is not None and one.thread.handling and one.steady
    ]
    others = [one for one in picture.waiting if one not in held]
    if not held or not others:
        return None
    first = held[0].thread
    assert first is not None
    return Verdict(
        f"{ranks(held[:1])} handles {first.handling} and stands still at {place(held[0].place)}"
        f"{calling(held[0])}",
        suspects(held, picture),
        has_not_reached(held, picture),
        look_at(held),
    )


LEAST_THREADS = 2
"""The debugger has several, which all want the lock; one thread may be busy with something else."""


def gil_held(picture: Picture) -> Verdict | None:
    """Code in C keeps Python's global lock, so that no other thread of the rank can run.

    A rank that tells nothing, though its process runs and its threads ask for the lock. One with
    which the others get on meanwhile has only kept it for a while.
    """
    held = [
        one
        for one in picture.live
        if not one.told
        and not one.leaving
        and one.processes
        and one.processes[-1].state not in STOPPED
        and one.waiting_for_gil >= LEAST_THREADS
    ]
    if not held or picture.moves:
        return None
    process = held[0].processes[-1]
    return Verdict(
        f"{ranks(held)}: a call into C holds Python's global lock (GIL), and nothing else runs",
        suspects(held, picture),
        (
            f"it answers nothing, and {held[0].waiting_for_gil} of its threads ask for the lock",
            *busy_with(held[0]),
            *who_waits(picture),
        ),
        f"gdb -p {process.pid} -batch -ex 'thread apply all bt'",
    )


Find = Callable[[Picture], Verdict | None]
# The first that finds something is given. Exit codes of the command follow the order.
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
    for name, find in {**ORDER, HEALTHY: healthy}.items():
        if (verdict := find(picture)) is not None:
            return replace(verdict, name=name)
    return replace(_undecided(picture), name=UNDECIDED)


AGAIN_AFTER_S: Final = 2.5
"""A step may take so long in which ranks wait for one that sleeps: what stands is seen again."""
DOUBTFUL: Final = frozenset({"input-starved", "blocked-io", "not-joined", "slow-rank"})
BY_MOMENTS: Final = frozenset({"gil-held", "slow-rank"})
"""Seen again however long others have waited. Where a machine has too much to do, garbage of two
million objects is collected for seconds, and a rank that sleeps most of the time does not always.
"""
WAITED_S: Final = 5.0


def is_doubtful(verdict: Verdict, evidence: Evidence) -> bool:
    """Whether a verdict rests on what stood still or said nothing for less than a second.

    Or on a job's start.
    """
    picture = picture_of(evidence)
    starts = any(one.wait is not None and one.wait.kind == JOINS for one in picture.waiting)
    ages = [one.wait.age for one in picture.waiting if one.wait is not None]
    known = bool(ages) and all(age is not None and age >= WAITED_S for age in ages)
    if verdict.name in BY_MOMENTS:
        return True
    return (verdict.name in DOUBTFUL or starts) and verdict.name != HEALTHY and not known


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
    return Verdict(f"{ranks(moving)} {verb(moving, 'is', 'are')} at work")


def _undecided(picture: Picture) -> Verdict:
    silent = [one for one in picture.live if not one.told]
    if silent:
        problems = grouped((one.standing.problem or "no answer", one) for one in silent)
        told = [f"{ranks(each)}: {problem}" for problem, each in problems.items()]
        sentence = "; ".join([*told, "nothing else is wrong"])
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
    return Verdict(sentence, suspects(silent, picture), who_waits(picture))
