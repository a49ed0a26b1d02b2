"""What a verdict says, and the words that all of them use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.stack_tree import Frame, Stack, frame_body
from dap_mux.pure.insight.why.evidence import Child, Evidence, Thread
from dap_mux.pure.insight.why.graph import graph_of
from dap_mux.pure.insight.why.picture import Doing, Picture, picture_of, same_wait
from dap_mux.pure.rank_sets import RankId, name_ranks

DEFAULT_GROUP: Final = "job"
DISK: Final = "D"
SYSTEM_STATES: Final = {"D": "asleep in the kernel (state D)", "S": "asleep", "R": "at work"}


@dataclass(frozen=True)
class Suspect:
    """Ranks that are to be looked at, where they are, and what they wait for, "" for nothing."""

    ranks: tuple[RankId, ...]
    stack: Stack
    waiting_for: str = ""


@dataclass(frozen=True)
class Verdict:
    """`sentence`: who and why; `suspects`: the culprit first; `next`: the command that helps.

    `name`: that of its row among the verdicts, which `judge` gives it.
    """

    sentence: str
    suspects: tuple[Suspect, ...] = ()
    evidence: tuple[str, ...] = ()
    next: str = ""
    name: str = ""


def ranks(of: Iterable[Doing]) -> str:
    """Return `rank 5`, `ranks 0-4,6` or `rank Worker:1`."""
    return name_ranks([one.rank for one in of], DEFAULT_GROUP)


def named_ids(ids: Sequence[RankId]) -> str:
    """Return `5`, `0-4,6` or `Worker:1`."""
    return name_ranks(ids, DEFAULT_GROUP).partition(" ")[2]


def verb(of: Sequence[Doing], singular: str, plural: str) -> str:
    """Return the form of a verb that fits so many ranks."""
    return singular if len(of) == 1 else plural


def place(frame: Frame | None) -> str:
    """Return `loader.py:23 (load_batch)`; "an unknown place" for None."""
    if frame is None:
        return "an unknown place"
    return f"{PurePath(frame.path).name}:{frame.line} ({frame.function})"


def calling(one: Doing) -> str:
    """Return ` in time.sleep(60)`, "" where the call is not known."""
    return f" in {one.call.text}" if one.call and one.call.text else ""


def seconds(number: float) -> str:
    """Return a duration as people say it: `41 s`, `29 min`."""
    return f"{number:.0f} s" if number < 120 else f"{number / 60:.0f} min"


def suspects(culprits: Iterable[Doing], picture: Picture) -> tuple[Suspect, ...]:
    """The culprits one by one, then who waits for them, together where they stand alike."""
    first = tuple(Suspect((one.rank,), one.stack, str(one.wait or "")) for one in culprits)
    named = {rank for each in first for rank in each.ranks}
    waiting = (one for one in picture.waiting if one.rank not in named)
    alike = grouped(((one.stack, str(one.wait)), one.rank) for one in waiting)
    victims = (Suspect(tuple(of), stack, wait) for (stack, wait), of in alike.items())
    return (*first, *victims)


def who_waits(picture: Picture, culprits: Sequence[Doing] = ()) -> tuple[str, ...]:
    """Say what the others wait in, a sentence for each place and kind."""
    names = {one.rank for one in culprits}
    waiting = (one for one in picture.waiting if one.rank not in names)
    alike = grouped(((str(one.wait), place(one.place)), one) for one in waiting)
    return tuple(
        f"{ranks(of)} {verb(of, 'waits', 'wait')} in {wait} at {where}{_how_long(of)}"
        for (wait, where), of in alike.items()
    )


def _how_long(of: Sequence[Doing]) -> str:
    waits = [one.wait for one in of if one.wait is not None]
    ages = [wait.age for wait in waits if wait.age is not None]
    if not ages:
        return ""
    left = [wait.timeout - wait.age for wait in waits if wait.timeout and wait.age is not None]
    timeout = f" (time-out in {seconds(min(left))})" if left and min(left) > 0 else ""
    return f" for {seconds(max(ages))}{timeout}"


def has_not_reached(culprits: Sequence[Doing], picture: Picture) -> tuple[str, ...]:
    """Say that culprits are not where all the others wait, if those wait for the same."""
    others = [one for one in picture.waiting if one not in culprits]
    wait, waiting = same_wait(others), who_waits(picture, culprits)
    if wait is None or wait.result:
        return waiting
    they = verb(culprits, "it has", "they have")
    return (f"{they} not reached {wait}", *waiting)


def look_at(of: Sequence[Doing]) -> str:
    """Return the command that brings a user to a rank."""
    return f"dap-mux console, then `attach {named_ids([of[0].rank])}`"


def in_the_kernel(thread: Thread) -> str:
    """Say what a thread does in the kernel, "" where that is unknown."""
    if not thread.system_call:
        return SYSTEM_STATES.get(thread.state, "") if thread.state == DISK else ""
    of = f" of {thread.file}" if thread.file else ""
    return f"in {thread.system_call}{of}, {SYSTEM_STATES.get(thread.state, thread.state)}"


SHOWN_FROM: Final = 0.2
"""Of a processor; with less a rank is not called busy."""


def busy_with(one: Doing) -> tuple[str, ...]:
    """Say how much of a processor the process of a rank uses, if it is much or all that it gets."""
    used = one.of_a_processor
    if used >= SHOWN_FROM:
        return (f"it is busy: it uses {used:.0%} of a processor",)
    if one.wants_processor:
        return (f"it is busy, and gets {used:.0%} of a processor: its machine has more to do",)
    return ()


MOST_CHILDREN: Final = 3
ZOMBIE: Final = "Z"
FUTEX: Final = "futex"


def its_children(one: Doing) -> tuple[str, ...]:
    """Say what the processes do that a rank has started, which it may wait for."""
    found = one.samples[-1].children if one.samples else []
    told = [f"its child process {child.pid} {_child_does(child)}" for child in found]
    return (*told[:MOST_CHILDREN], *(["and so on"] if len(told) > MOST_CHILDREN else []))


def _child_does(child: Child) -> str:
    if child.state == ZOMBIE:
        return "has ended, and nobody has waited for it"
    if child.system_call == FUTEX:
        return "waits for a lock or for another thread (futex)"
    of = f" of {child.file}" if child.file else ""
    state = SYSTEM_STATES.get(child.state, child.state)
    return f"is in {child.system_call}{of}, {state}" if child.system_call else f"is {state}"


# A verdict as the response of `why`.

Body = dict[str, Any]
FINE: Final = frozenset({"healthy"})
OFF: Final = "off"
DONE: Final = "completed"
MOST_WAITS: Final = 512
RECORDER_OFF: Final = (
    "torch's flight recorder is off (rank set {}), so it is not known in which collectives they "
    "are: TORCH_FR_BUFFER_SIZE=2000 switches it on"
)

BY_CALLS: Final = "known by the record of open calls of rank set {} (--comm time)"


def answer(
    verdict: Verdict, named: Callable[[Iterable[RankId]], str], evidence: Evidence | None = None
) -> Body:
    """Return the response; `named`: ranks as a rank set. `evidence`: what it was judged by."""
    off = _without_recorder(evidence) if evidence and verdict.name not in FINE else []
    of_calls = _with_open_calls(evidence) if evidence and verdict.name not in FINE else []
    return {
        "verdict": verdict.name,
        "sentence": verdict.sentence,
        "suspects": [
            {
                "ranks": named(suspect.ranks),
                "stack": [frame_body(each) for each in reversed(suspect.stack)],
                "waitingFor": suspect.waiting_for,
            }
            for suspect in verdict.suspects
        ],
        "evidence": [
            *verdict.evidence,
            *([BY_CALLS.format(named(of_calls))] if of_calls else []),
            *([RECORDER_OFF.format(named(off))] if off else []),
        ],
        "next": verdict.next,
        "waits": _waits(evidence, named) if evidence else [],
    }


def _waits(evidence: Evidence, named: Callable[[Iterable[RankId]], str]) -> list[Body]:
    """Return the graph's edges: ranks that wait for the same ranks are one of them."""
    waits = graph_of(picture_of(evidence)).waits_for.items()
    alike = grouped((others, rank) for rank, others in waits if others)
    edges = list(alike.items())[:MOST_WAITS]
    return [{"ranks": named(waiting), "for": named(sorted(others))} for others, waiting in edges]


def _without_recorder(evidence: Evidence) -> list[RankId]:
    """Return the ranks of torch whose flight recorder has no room for entries."""
    if evidence.by_calls:
        return []
    return [one.rank for one in evidence if one.last is not None and one.last.recorder == OFF]


def _with_open_calls(evidence: Evidence) -> list[RankId]:
    """Return the ranks whose own record says in which calls they are, where it is what counts."""
    if not evidence.by_calls:
        return []
    lasts = [(one.rank, one.last) for one in evidence if one.last]
    return [rank for rank, last in lasts if any(call.state != DONE for call in last.calls or ())]
