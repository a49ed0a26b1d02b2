"""Has a replay run at full speed to a call or a step, and stop there in the debugger."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.record import user_frame
from dap_mux.rank.comm.session import TRACING, suspend_as_at_breakpoint
from dap_mux.rank.take.rank_file import CALL_PLACE, STEP_PLACE, Place

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable

    from dap_mux.rank.take.rank_file import Taken
    from dap_mux.rank.take.together import Together


class Halt:
    """Stops once, at a place. Until then nothing is traced: breakpoints cost nothing, nor stop.

    `place`: None in a rank that goes along, until another of those `together` is there.
    """

    def __init__(
        self,
        place: Place | None,
        total: int,
        log: Callable[[str], object],
        together: Together,
    ) -> None:
        self._place = place
        self._goes_along = place is None
        self._together = together
        self._total = total
        self._log = log
        self._tracing: Any = None
        self._wait: Callable[[], object] | None = None

    def begin(self, wait: Callable[[], object]) -> None:
        """Trace nothing, whoever attaches; debugpy listens, and the program has not begun.

        `wait`: waits at the place for a debugger, if none is there.
        """
        self._wait = wait
        tracing: Any = import_module(TRACING)
        debugger: Any = sys.modules["pydevd"].get_global_debugger()
        self._tracing = getattr(debugger, tracing.KEPT_AS)
        self._tracing.turn_on = self._tracing.turn_off

    def end(self) -> None:
        """Trace again where a debugger is attached: the replay is there, or has parted before."""
        self._goes_along, self._place = False, None
        self._together.reach()
        tracing, self._tracing = self._tracing, None
        if tracing is not None:
            del tracing.turn_on
            if sys.modules["pydevd"].get_global_debugger().is_attached():
                tracing.turn_on()

    def before(self, taken: Taken) -> None:
        """A call is about to be answered."""
        call = taken.call
        if self._goes_along and self._together.is_reached():
            self.end()
        elif self._place in (Place(CALL_PLACE, call["order"]), Place(STEP_PLACE, 0)):
            self._stop(f"before call {call['order']} of {self._total}, {call['kind']}")

    def stepped(self, step: Any) -> None:
        """A step is over."""
        if self._place == Place(STEP_PLACE, step.number + 1):
            self._stop(f"where step {step.number + 1} begins, behind {step.optimizer}.step()")

    def _stop(self, where: str) -> None:
        frame = user_frame(sys._getframe()) or sys._getframe()  # noqa: SLF001
        self._log(f"stops {where} ({frame.f_code.co_filename}:{frame.f_lineno})")
        if self._wait is not None:
            self._wait()
        self.end()
        suspend_as_at_breakpoint(frame)
