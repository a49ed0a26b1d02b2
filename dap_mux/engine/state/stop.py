"""A rank's stop, and the steps that ranks of one class take together.

Only `stops` changes them.
"""

from __future__ import annotations

from msgspec import Struct, field

from dap_mux.engine.state.bodies import Body
from dap_mux.protocol.rank_messages import ActorTold
from dap_mux.rank_sets import RankId
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
    paused: bool = False  # it was asked to stop, and shows as that until this has settled
    is_outlier: bool = False  # its value is why ranks have stopped at a differ breakpoint
    settled: bool = False  # its place is known, and it does not continue by itself
    announced: bool = False

    @property
    def frame_id(self) -> int | None:
        """debugpy's id of the selected frame, None if the stack is unknown."""
        return self.frame_ids[self.selected] if self.selected < len(self.frame_ids) else None


class BarrierRound(Struct, eq=False):
    """The ranks that stand at a barrier until the others of its set are there.

    `barrier`: its breakpoint, by the id that it keeps when its client sends it again. `awaited`:
    those that are missing; `passed`: those that were let go alone; `gone`: those that have ended
    or been lost meanwhile.
    """

    barrier: int
    word: str  # `barrier` or `differ`
    here: set[DebuggeeId] = field(default_factory=set)
    awaited: set[DebuggeeId] = field(default_factory=set)
    passed: set[DebuggeeId] = field(default_factory=set)
    gone: set[DebuggeeId] = field(default_factory=set)
    complete: bool = False
    stops: str = ""  # why its ranks stop, once that is decided; then those in conditions do so
    text: str = ""  # more about that
    outliers: frozenset[RankId] = frozenset()
    told: str = ""  # what the names of its ranks' rows say of it, once it has lasted for a moment
    naming: int | None = None  # the deadline by which they say it anew
    overdue: int | None = None  # ... and that by which users are told who is missing
    patience: int | None = None  # ... and that by which it fails, if it may

    def __str__(self) -> str:
        return f"{self.word} {len(self.here)}/{len(self.here) + len(self.awaited)}"


class AtBarrier(Struct, eq=False):
    """A rank's wait in the condition of a barrier breakpoint (`injected.comparisons`).

    `number`: its own of this wait. `stops`: it was told to stop there; `stands`: it has, and its
    place is known; `shown`: clients see that stop, for the rank was paused; `passes`: it is to
    continue as soon as it stands. `round` is None once the round is over and it does not yet.
    """

    number: int
    value: str  # what it has reported for comparison
    problem: str = ""  # why there is no value
    frame: Frame | None = None  # where it waits, if that is known
    round: BarrierRound | None = None
    stops: bool = False
    stands: bool = False
    shown: bool = False
    passes: bool = False


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
