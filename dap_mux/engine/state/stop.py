"""A rank's stop, and the steps that ranks of one class take together.

Only `stops` changes them.
"""

from __future__ import annotations

from msgspec import Struct

from dap_mux.engine.state.bodies import Body
from dap_mux.protocol.rank_messages import ActorTold
from dap_mux.rank_sets.debuggees import DebuggeeId


class Frame(Struct, frozen=True, gc=False):
    """The part of a stack frame that classes compare: client path, function and line."""

    path: str
    name: str
    line: int


class Stop(Struct):
    """A rank's stop; `thread` is debugpy's id of the thread that caused it."""

    thread: int
    reason: str
    details: Body
    frames: tuple[Frame, ...] | None = None
    frame_ids: tuple[int, ...] = ()  # debugpy's own, of the same frames
    actor: ActorTold | None = None  # in whose code it is, by its own number and place
    line_text: str | None = None  # source text of the innermost frame's line, None if unknown
    own: int = 0  # index of the innermost frame in user code, at an exception
    selected: int = 0  # index of the frame that `u` and `d` selected, `own` at first
    unhandled: bool = False  # perhaps an uncaught exception: the process ends when it continues
    settled: bool = False  # its place is known, and it does not continue by itself
    announced: bool = False

    @property
    def frame_id(self) -> int | None:
        """debugpy's id of the selected frame, None if the stack is unknown."""
        return self.frame_ids[self.selected] if self.selected < len(self.frame_ids) else None


class StepRun(Struct):
    """One step of a class in lockstep; `overdue`: clients were told of those pending."""

    members: set[DebuggeeId]
    pending: set[DebuggeeId]
    overdue: bool = False


class Deferred(Struct, frozen=True):
    """A command that a late rank runs when it arrives, to catch up with its class.

    `place` is where the class was when the command was given; None for a continue.
    """

    command: str
    arguments: Body
    place: tuple[Frame, ...] | None
    run: StepRun | None = None
