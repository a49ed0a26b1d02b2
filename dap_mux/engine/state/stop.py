"""A rank's stop, and the steps that ranks of one class take together.

Only `stops` changes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dap_mux.engine.state.bodies import Body
from dap_mux.rank_sets.debuggees import DebuggeeId


@dataclass(frozen=True)
class Frame:
    """One stack frame as far as classes compare it: (client path, function, line)."""

    path: str
    name: str
    line: int


@dataclass
class Stop:
    """Why and where a rank is stopped; `thread` is debugpy's id of the causing thread."""

    thread: int
    reason: str
    details: Body
    frames: tuple[Frame, ...] | None = None
    frame_ids: tuple[int, ...] = ()  # debugpy's own, of the same frames
    line_text: str | None = None  # of the innermost frame's line; None: not known
    own: int = 0  # the innermost frame of the user's own files, where an exception was raised
    selected: int = 0  # the frame that `u` and `d` went to, `own` at first
    unhandled: bool = False  # an uncaught exception, or perhaps: it ends when it runs on
    settled: bool = False  # where it stands is known, and it does not run on by itself
    announced: bool = False

    @property
    def frame_id(self) -> int | None:
        """Debugpy's id of the selected frame; None where the stack is not known."""
        return self.frame_ids[self.selected] if self.selected < len(self.frame_ids) else None


@dataclass
class StepRun:
    """One lock-step of a class: who has not arrived yet, and whether the clients were told."""

    members: set[DebuggeeId]
    pending: set[DebuggeeId]
    overdue: bool = False


@dataclass(frozen=True)
class Deferred:
    """What a rank must do on its own when it arrives, to keep up with its class.

    `place` is where the class stood when it was told; None for a continue.
    """

    command: str
    arguments: Body
    place: tuple[Frame, ...] | None
    run: StepRun | None = None
