"""Stops this rank where it is about to send, or to step to, what is not finite: alone, and there.

Nothing is sent before the debugger lets it continue. `arm` and `disarm` are called by the session.
"""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

from dap_mux.rank.comm import mpi, session, switch
from dap_mux.rank.comm.locate import Locator, Origin, counts_of
from dap_mux.rank.comm.looks import is_finite
from dap_mux.rank.comm.operators import tensors_in
from dap_mux.rank.comm.record import Call, in_backward, place_of, users_frame

EVENT = "dapMuxNotFinite"
MAX_NAMES = 3
TURNS = 8
"""Without `locates`, each step looks at an eighth of the parameters, in turn."""
MIN_SCALE = 1.0
"""A gradient scaler looks for the largest scale that does not overflow; below, it never ends."""


class NotFinite(Exception):
    """Never raised: the debugger shows it at such a stop."""


NotFinite.__qualname__ = "Not finite"  # what clients show


class _Guard:
    """Looks, from `arm` to `disarm`. `spoilt`: the last step in which something was not finite."""

    mode = "finite"

    def __init__(self, *, locates: bool) -> None:
        self.began = False
        self.locates = locates
        self._locator: Locator | None = None
        self._spoilt = self._spoilt_call = -2
        self._plain_backward: Any = None
        self._backward: Any = None

    def begin(self) -> None:
        """Look; torch is there."""
        self.began = True
        watch, steps = switch.watch(), switch.steps()
        if watch is not None:
            watch.sending.append(self._sends)
        if steps is not None:
            steps.looking.append(self._steps)
            steps.ended.append(self._stepped)
        autograd: Any = sys.modules["torch"].autograd
        backward = self._plain_backward = autograd.backward

        def look_and_backward(tensors: Any, *arguments: Any, **named: Any) -> Any:
            self._begins_backward(tensors)
            return backward(tensors, *arguments, **named)

        autograd.backward = self._backward = look_and_backward
        if self.locates and threading.current_thread() is threading.main_thread():
            self._enter()  # else at the end of the step, in the thread that trains

    def begin_mpi(self, watch: mpi.MpiWatch) -> None:
        """Look at what mpi4py sends."""
        if self._sends_by_mpi not in watch.sending:
            watch.sending.append(self._sends_by_mpi)

    def end(self) -> None:
        """Look no more."""
        by_mpi = switch.mpi()
        if by_mpi is not None and self._sends_by_mpi in by_mpi.sending:
            by_mpi.sending.remove(self._sends_by_mpi)
        watch, steps = switch.watch(), switch.steps()
        if watch is not None and self._sends in watch.sending:
            watch.sending.remove(self._sends)
        if steps is not None and self._steps in steps.looking:
            steps.looking.remove(self._steps)
            steps.ended.remove(self._stepped)
        autograd: Any = sys.modules["torch"].autograd if self._backward else None
        if autograd is not None and autograd.backward is self._backward:
            autograd.backward = self._plain_backward
        if self._locator is not None:
            self._locator.end()

    def _enter(self) -> None:
        try:
            if self._locator is None:
                self._locator = Locator()
            self._locator.enter()
        except Exception as error:  # noqa: BLE001  (private parts of torch: the job goes on)
            self.locates = False
            version = sys.modules["torch"].__version__
            session.log(f"cannot locate with torch {version}: {type(error).__name__}: {error}")

    def _stepped(self, step: Any) -> None:
        if self.locates:
            self._enter()
        elif self._locator is not None:
            self._locator.end()
            self._locator = None
        if self._locator is not None:
            self._locator.step = step.number + 1

    def _begins_backward(self, tensors: Any) -> None:
        try:
            bad = [each for each in tensors_in([tensors]) if not is_finite(each)]
            record = switch.record()
            if bad and record is not None and not _is_scaling():
                self._stop(record.step, bad, counts_of(bad), "the loss", "before backward()")
        except Exception as error:  # noqa: BLE001  (private parts of torch and debugpy)
            session.log(f"cannot look at its loss: {type(error).__name__}: {error}")

    def _sends(self, call: Call, bad: list[Any]) -> None:
        nan, infinite, of = counts_of(bad)
        backward = in_backward()
        # A buffer that masks attention is infinite, and sent to all.
        if (call.kind == "broadcast" and not nan) or (backward and _is_scaling()):
            return
        what = "a gradient bucket" if backward and call.kind == "all_reduce" else "its input"
        before = f"before {call.kind} #{call.number} of group {call.group[1] or call.group[0]}"
        self._stop(call.step, bad, (nan, infinite, of), what, before)

    def _sends_by_mpi(self, call: mpi.MpiCall, sent: list[Any]) -> None:
        before, self._spoilt_call = self._spoilt_call, call.order
        if call.order - before <= 1:
            return  # it has stopped for this, which goes on
        shape = f"{call.dtype} {[*(call.shape or ())]}"
        when = f"before {call.kind} #{call.number} of {call.group[0]}"
        self._tell(call.number, f"{_amount(mpi.counts_of(sent[0]))} of its input ({shape}) {when}")

    def _steps(self, what: str, step: Any, named: list[tuple[str, Any, Any]]) -> None:
        summed = self._has_summed(step.number)
        if what == "gradient":
            if summed:
                return  # its own part was looked at, before it was sent
            looked = [(name, gradient) for name, _, gradient in named if gradient is not None]
        else:
            turn = slice(None) if self.locates else slice(step.number % TURNS, None, TURNS)
            looked = [(name, parameter) for name, parameter, _ in named[turn]]
        bad = [(name, each) for name, each in looked if not is_finite(each)]
        names = {name for name, _ in bad}
        gradients = [one for name, _, one in named if name in names and one is not None]
        if bad and what != "gradient" and summed and not all(map(is_finite, gradients)):
            # Who made it has stopped before its part was sent; else the sum has overflowed.
            self._spoilt = step.number
            text = f"the gradient of {bad[0][0]}, as it came out of a collective"
            session.tell(EVENT, {"text": text, "step": step.number, "stops": False})
        elif bad:
            shown = ", ".join(name for name, _ in bad[:MAX_NAMES])
            more = f" and {len(bad) - MAX_NAMES} more" if len(bad) > MAX_NAMES else ""
            tensors = [each for _, each in bad]
            when = f"{'before' if what == 'gradient' else 'after'} {step.optimizer}.step()"
            self._stop(step.number, tensors, counts_of(tensors), f"{what} {shown}{more}", when)

    def _has_summed(self, step: int) -> bool:
        record = switch.record()
        for call in reversed([*record.last] if record is not None else []):
            if call.step < step:
                return False
            if "reduce" in call.kind:
                return True
        return False

    def _stop(
        self, step: int, bad: list[Any], counts: tuple[int, int, int], what: str, when: str
    ) -> None:
        spoilt, self._spoilt = self._spoilt, step
        if step - spoilt <= 1:
            return  # it has stopped for this, which goes on
        origin = self._locator.origin_of(bad) if self._locator is not None else None
        shape = f"{str(bad[0].dtype).replace('torch.', '')} {[*bad[0].shape]}"
        text = f"{_amount(counts)} of {what} ({shape}) {when}, step {step}"
        if origin is not None:
            text += f": {_made(origin)}"
        self._tell(step, text, origin.place if origin is not None else "")

    def _tell(self, step: int, text: str, made: str = "") -> None:
        """Say it, and suspend this thread where somebody debugs it. `step`: or number of a call."""
        frame = users_frame() or sys._getframe()  # noqa: SLF001
        body = {"text": text, "step": step, "place": place_of(frame), "made": made}
        if session.tell(EVENT, body):
            session.suspend(frame, NotFinite(text))
        else:
            session.log(f"not finite: {text} ({place_of(frame)})")


def _amount(counts: tuple[int, int, int]) -> str:
    nan, infinite, of = counts
    kinds = [f"{count} {kind}" for count, kind in ((nan, "NaN"), (infinite, "inf")) if count]
    return f"{nan + infinite} of {of} elements ({', '.join(kinds)})"


def _made(origin: Origin) -> str:
    """Return `made by log at model.py:40 in net.head (step 12): 3 of 256 …; its input: …`."""
    path, _, line = origin.place.partition(" ")[0].rpartition(":")
    module = f" in {origin.module}" if origin.module else ""
    verb = "given to" if origin.given else "made by"
    text = f"{verb} {origin.operation} at {path}:{line}{module} (step {origin.step}): "
    text += _amount(origin.counts)
    if origin.backward:
        text += f"; backward called at {origin.backward}"
    return text + (f"; its inputs: {'; '.join(origin.inputs)}" if origin.inputs else "")


def _is_scaling() -> bool:
    """Whether a gradient scaler looks for its scale: it leaves such a step out."""
    for each in gc.get_objects():
        if type(each).__name__ == "GradScaler" and each.is_enabled():
            return bool(each.get_scale() > MIN_SCALE)
    return False


def arm(*, locates: bool) -> str:
    """Stop from now on; return why that cannot be, "" where it can.

    `locates`: name the line, from the next step on where the program runs already.
    """
    guard = switch.guarded(EVENT)
    if guard is None:
        switch.guard(EVENT, _Guard(locates=locates))
    else:
        guard.locates = locates
    return switch.why_unwatched("torch", "mpi4py")


def disarm() -> None:
    """Stop no more."""
    switch.guard(EVENT, None)
