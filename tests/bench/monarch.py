"""Beside Monarch's own debugger: 16 actors there, 16 ranks here, driven by the same keys.

Both are typed at through their own door for `nc`: Monarch's `monarch debug` runs `nc` to it, ours
is `dap-mux console --serve`. They take turns, line by line, so that what else runs on the machine
burdens both. Ours has two more hops, console and session.

An actor is one process, and so is a rank of `dap-mux run`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median
from time import perf_counter
from typing import Final

from tests.bench.figures import Figure, at_most, not_measured
from tests.bench.monarch_job import (
    COUNT,
    NoMonarchError,
    actors,
    monarch_python,
    ranks,
)
from tests.bench.processes import consoles
from tests.bench.prompts import Manner, Prompt, all_moved, answered_in

ROUNDS: Final = 60
WARM_UP: Final = 5
ATTACHED: Final = 13  # the rank whose prompt is taken, as on Monarch's page
REST: Final = 0.1  # s in which what a turn has left behind comes to rest: its ranks go on writing
MOVE_BOUND, LIST_BOUND, EXPRESSION_BOUND = 0.7, 0.7, 0.5
EXPRESSION: Final = "number + 1"
OURS: Final = Manner(
    "dap-mux",
    prompt=rb"dap-mux> ",
    listed=rb"(?:\+|no stopped ranks)\n\d+ [^|\n]*\ndap-mux> ",
    attached=rb"\(Pdb 13\) ",
    cast="cast ranks(:) {}",
    attach=f"attach {ATTACHED}",
)
THEIRS: Final = Manner(
    "monarch",
    prompt=rb"monarch_dbg> ",
    listed=rb"\+\nmonarch_dbg> ",
    attached=rb"\(Pdb\) ",
    cast="cast debugee ranks(:) {}",
    attach=f"attach debugee {ATTACHED}",
)


def run() -> Iterator[Figure]:
    """Measure both in one run, in turns."""
    try:
        python = monarch_python()
    except NoMonarchError as error:
        yield not_measured("beside Monarch's debugger", str(error))
        return
    with ExitStack() as stack:
        port = stack.enter_context(actors(python))
        job = stack.enter_context(ranks())
        served = stack.enter_context(consoles(job.session))
        theirs = stack.enter_context(Prompt(port, THEIRS))
        ours = stack.enter_context(Prompt(served, OURS))
        for prompt in (ours, theirs):
            while len(prompt.places()) < COUNT:
                pass
        yield from _compare(ours, theirs)


def _compare(ours: Prompt, theirs: Prompt) -> Iterator[Figure]:
    name = theirs.manner.name
    moved = f"cast n to {COUNT} until moved, p50"
    yield at_most(moved, *_medians(ours, theirs, _move), MOVE_BOUND, name)
    yield at_most(f"list of {COUNT}, p50", *_medians(ours, theirs, _list), LIST_BOUND, name)
    yield _answers(ours, theirs)
    for prompt in (ours, theirs):
        prompt.does(prompt.manner.attach, prompt.manner.attached)
    seconds = _medians(ours, theirs, _evaluate)
    yield at_most("expression, attached, p50", *seconds, EXPRESSION_BOUND, name)
    for prompt in (ours, theirs):
        prompt.does("detach", prompt.manner.prompt)


def _medians(
    ours: Prompt, theirs: Prompt, measured: Callable[[Prompt], float]
) -> tuple[float, float]:
    """Return the median seconds of both, ours first."""
    times: dict[Prompt, list[float]] = {ours: [], theirs: []}
    for _ in range(WARM_UP + ROUNDS):
        for prompt, found in times.items():
            found.append(measured(prompt))
            time.sleep(REST)
    return median(times[ours][WARM_UP:]), median(times[theirs][WARM_UP:])


def _move(prompt: Prompt) -> float:
    """Return the seconds from a step of everybody until `list` shows that everybody has moved."""
    before = prompt.places()
    assert len(before) == COUNT
    prompt.forget()
    start = perf_counter()
    prompt.type(prompt.manner.cast.format("n"), "list")
    while not all_moved(before, prompt.table()):
        prompt.type("list")
    return perf_counter() - start


def _list(prompt: Prompt) -> float:
    return prompt.timed("list", prompt.manner.listed)


def _evaluate(prompt: Prompt) -> float:
    return prompt.timed(EXPRESSION, rb"\n?\d+\n" + prompt.manner.attached)


def _answers(ours: Prompt, theirs: Prompt) -> Figure:
    """How many ranks' answers a cast shows: Monarch's prompt comes back without any."""
    mine, other = (_answered(prompt) for prompt in (ours, theirs))
    told = f"{other} of {COUNT} {theirs.manner.name}"
    return Figure("answers that cast p shows", f"{mine} of {COUNT}", told, held=mine > other)


def _answered(prompt: Prompt) -> int:
    text = prompt.does(prompt.manner.cast.format("p number"), prompt.manner.prompt)
    text += prompt.does("list", prompt.manner.listed)  # whatever comes behind the prompt
    return answered_in(text)
