"""Tells the session what parameters are after each step, and stops all ranks after the same one.

A step's message has digests only. The session asks for hashes where digests differ; ranks wait at
the end of their steps meanwhile, so that it can choose a step that none of them has left behind.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm import session, switch
from dap_mux.rank.comm.record import C10D, Call, ranks_of, user_frame
from dap_mux.rank.comm.trace import plain, step_line

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import FrameType

    from dap_mux.rank.comm.steps import Step

EVENT = "dapMuxStep"
HOLD_S = 10.0
"""A rank waits no longer for a session that has asked it something."""
LOOK_AGAIN_S = 0.2
"""While it waits: after that it looks whether the session has left it."""
KEPT, SENT = 64, 3
"""Steps that are remembered, and how many of the last are sent when the session asks."""
APART, VALUES = "-", "="
"""The set of parameters that no other rank has, and what the user's expression has for one."""


class Diverged(Exception):
    """Never raised: the debugger shows it at such a stop."""


COMPARE = "; compare: "
"""Before an expression that has another value in some rank, where ranks stop: clients know it."""
Diverged.__qualname__ = "Diverged"  # what clients show


class Live:
    """From `arm` to `disarm`. `equal`: an expression, whose value is told as parameters are.

    `sets`: which parameters have digests of their own, by name. `others`: the set of all other
    parameters. `passed`: the last step whose end is behind.
    """

    mode = "hash"

    def __init__(self, equal: str = "", log: Callable[[str], object] = session.log) -> None:
        self.began = False
        self._equal = equal
        self._log: Callable[[str], object] | None = log
        self.sets: dict[str, str] = {}
        self.others = ""
        self.passed = -1
        self._first: list[dict[str, Any]] = []
        self._last: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._turn = threading.Condition()
        self._holds = False
        self._stop: tuple[int, str, dict[str, str]] | None = None
        self._calls: list[int] | None = None

    def begin(self) -> None:
        """Follow the steps; torch is there."""
        steps = switch.steps()
        if steps is not None:
            self.began = True
            steps.ended.append(self._stepped)
            steps.equal += [self._equal] if self._equal else []

    def begin_mpi(self, _: object) -> None:
        """Follow nothing more: steps are torch's, whoever carries the gradients."""

    def end(self) -> None:
        """Follow them no more, and keep no rank."""
        steps = switch.steps()
        if steps is not None and self._stepped in steps.ended:
            steps.ended.remove(self._stepped)
            steps.equal = [text for text in steps.equal if text != self._equal]
        self.go(-1, "")

    def _stepped(self, step: Step) -> None:
        record = switch.record()
        order = self._order(step.number)
        told = False
        self._say_failed(step)
        if record is not None and order is not None:
            line = {**step_line(step, record), "order": order}
            self._last.append(line)
            if step.before:
                self._first.append(line)
            digests, whole = self._digests(step)
            body = {"step": step.number, "order": order, "digests": digests, "whole": whole}
            told = session.tell(EVENT, body)
        with self._turn:
            until = time.monotonic() + HOLD_S
            while told and self._holds and time.monotonic() < until:
                self._turn.wait(LOOK_AGAIN_S)
                told = session.debugger_of_session() is not None
            self._holds = False
            self.passed = step.number
            stop = self._stop
            if stop is None or step.number < stop[0]:
                return
            self._stop = None
        if told:
            frame = user_frame(sys._getframe()) or sys._getframe()  # noqa: SLF001
            _, text, compared = stop
            with suppress(Exception):  # a module of the program's own making
                expression = comparison(frame, **compared)
                text += f"{COMPARE}{expression}" if expression else ""
            session.suspend(frame, Diverged(text))

    def _order(self, number: int) -> list[int] | None:
        """Return what the same step has in all ranks, None where that is not known.

        In a job that ran before, ranks begin to count at different steps, but a process group has
        had the same number of calls in all of them.
        """
        record: Any = switch.record()
        if record.from_start:
            return [0, number]
        c10d: Any = sys.modules[C10D]
        group = c10d._get_default_group().group_name if c10d.is_initialized() else ""  # noqa: SLF001
        call = record.newest.get((str(group), False))
        calls = call.number if call is not None else 0
        before, self._calls = self._calls, [calls, 0]
        if before is not None and before[0] == calls:
            self._calls[1] = before[1] + 1 if before[1] >= 0 else -1
        elif before is None or not calls:
            self._calls[1] = -1  # some steps since this call may not have been seen
        return self._calls if self._calls[1] >= 0 else None

    def _digests(self, step: Step) -> tuple[dict[str, str], str]:
        """Return a digest of each set, and one of all where they are several."""
        texts: dict[str, list[str]] = {}
        whole: list[str] = []
        for name, after in sorted(step.after.items()):
            whole.append(f"{name} {step.before.get(name)} {after}")
            key = self.sets.get(name, self.others)
            if key != APART:
                texts.setdefault(key, []).append(whole[-1])
        if self._equal:
            texts[VALUES] = [repr(step.equal.get(self._equal)), repr(step.failed)]
        of_all = _digest(whole) if self.sets or self.others else ""
        return {key: _digest(each) for key, each in texts.items()}, of_all

    def _say_failed(self, step: Step) -> None:
        """Say once why an expression has no value: with none in all ranks, nothing differs."""
        log = self._log
        if self._equal in step.failed and log is not None:
            self._log = None
            log(f"has no value of {self._equal}: {step.failed[self._equal]}, at {step.place}")

    def look(self, until: int | None) -> dict[str, Any]:
        """Wait at the end of the step that is under way; return its number, and a trace's lines.

        `until`: the last step that is wanted, None for no lines.
        """
        with self._turn:
            self._holds = True
            at = self.passed + 1
        return {"at": at, "lines": self._lines(until) if until is not None else []}

    def _lines(self, until: int) -> list[dict[str, Any]]:
        last = [step for step in [*self._last] if step["number"] <= until][-SENT:]
        steps = {step["number"]: step for step in [*self._first, *last] if step["number"] <= until}
        calls: dict[int, list[Call]] = {}
        record: Any = switch.record()
        for call in [*record.last] if record is not None else []:
            calls.setdefault(call.step, []).append(call)
        first = min(steps, default=0)
        used = {call.group[0] for each in calls.values() for call in each}
        lines = [{"kind": "group", "name": name, "ranks": ranks_of(name)} for name in sorted(used)]
        for number in sorted(calls.keys() | steps.keys()):
            if number in steps or number < first:
                lines += map(plain, calls.get(number, []))
            if number in steps:
                lines.append(steps[number])
        return lines

    def go(self, stop: int, text: str, compared: dict[str, str] | None = None) -> None:
        """Wait no more; stop at the end of a step, unless it is negative."""
        with self._turn:
            self._holds = False
            self._stop = (stop, text, compared or {}) if stop >= 0 else None
            self._turn.notify_all()


def comparison(frame: FrameType, expression: str = "", parameter: str = "") -> str:
    """Return an expression for what differs, in the frame where ranks stop; "" for none.

    `parameter`: a name, as `Steps` has it. Its module is a variable of the frame, or an attribute
    of the frame's `self`.
    """
    module: Any = sys.modules["torch.nn"].Module
    own = getattr(frame.f_locals.get("self"), "__dict__", {})
    variables = {**frame.f_globals, **{f"self.{name}": own[name] for name in own}, **frame.f_locals}
    for variable, value in variables.items() if parameter else ():
        if issubclass(type(value), module):  # asks no object: some warn
            for name, _ in value.named_parameters():
                if parameter.partition("@")[0] in (name, name.removeprefix("module.")):
                    return f"{variable}.get_parameter({name!r})"
    return expression


def _digest(texts: list[str]) -> str:
    return blake2b("\n".join(texts).encode(), digest_size=8).hexdigest()


def arm(equal: str = "") -> str:
    """Tell from now on; return why that cannot be, "" where it can.

    `equal`: an expression whose value after each step is told as well.
    """
    tells = live()
    if tells is None:
        switch.guard(EVENT, Live(equal))
    else:
        tells.sets, tells.others = {}, ""
    return switch.why_unwatched("torch")


def disarm() -> None:
    """Tell no more."""
    switch.guard(EVENT, None)


def live() -> Live | None:
    """Return what tells, None where nothing does."""
    found: Live | None = switch.guarded(EVENT)
    return found
