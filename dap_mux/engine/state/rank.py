"""A rank, its connection and the requests that it has not answered: state only.

`ranks` changes a rank's connection, `stops` its stop and its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import UNSET, Raw, Struct, UnsetType, field

from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.phases import AfterLeaving, Phase
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.messages import NO_RAW, Body, Message
from dap_mux.pure.protocol.rank_messages import ActorTold, Stopped
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.world import DebuggeeId, rank_of, worker_of

# A rank's stop, and the steps that ranks of one class take together.
#
# Only `stops` changes them.


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


# The row of one rank, as the request `list` and the event `ranks` show it.


class RankRow(Struct, frozen=True, gc=False, rename="camel"):
    """The state of one rank or worker. Creating a Struct is several times faster than a dict."""

    rank: int
    worker: int | None
    group: str
    coords: dict[str, int] | None
    host: str | None
    pid: int | None
    endpoint: str | None
    state: str
    reason: str | None
    thread: str | None
    function: str | None
    module: str | None
    path: str | None
    line: int | None
    thread_id: int
    exit_code: int | None
    actor: Body | UnsetType = UNSET


NO_THREADS: Final[frozenset[int]] = frozenset()
NO_OVERRIDES: Final[Body] = {}  # of every rank, and never changed
NO_REASON: Final = "debugpy refused it and gave no reason"


class Reply(Struct, frozen=True, gc=False):
    """A rank's response, or the reason why there is none (`no_reply_reason`).

    `rank` is set where many ranks are asked at once.
    """

    ok: bool
    body: Raw = NO_RAW
    message: str = ""
    no_reply_reason: str = ""
    rank: Rank | None = None

    @property
    def problem(self) -> str:
        """The error, in the rank's own text or in ours; '' for a success."""
        return self.no_reply_reason or self.message or ("" if self.ok else NO_REASON)


class Pending(Struct):
    """A request that a rank has not answered; many ranks may share one object.

    `collect` takes the request's `seq` and the frame of an answer, of which nothing comes but that
    it is kept; False where that is not so, and `then` has to be called. It is told the message that
    the frame is if it did not know it without.
    """

    command: str
    then: Final[Callable[[Reply], None]]
    deadline: int | None
    cause: ClientRequest | None = None  # the client's request that it is made for
    collect: Final[Callable[[Rank, int, bytes, Message | None], bool] | None] = None


class Connection(Struct, eq=False):
    """One connection to an adapter; the next attempt replaces it. `link` is None once closed."""

    link: int | None = None
    incarnation: str = ""  # that of the endpoint when it was opened
    key: str = ""  # by which its process knows us, until it is attached
    direct: bool = False  # there is no adapter, and we take its part
    adapter_ready: bool = False  # the adapter has met its debuggee, so it may be sent `attach`
    # a stop before the rank is attached, which an adapter keeps back
    early_stop: tuple[Stopped, Body] | None = None
    seq: int = 0  # of the last message that it was sent
    pending: dict[int, Pending] = field(default_factory=dict)
    offers: Body | None = None  # its capabilities, once `initialize` is answered
    runs_on: bool = False  # `configurationDone` has been sent
    waits: bool = False  # it has what lets it wait in conditions (`injected.comparisons`)
    until_it_waits: list[Callable[[], None]] = field(default_factory=list)  # what is sent then
    cannot_wait: bool = False  # its debugpy would not take that
    refusal: str = ""  # why the rank is left again as soon as it is attached
    threads: set[int] = field(default_factory=set)  # started and not exited, by its events
    beats: bool = False  # it has been told that we are alive, and has not answered yet
    program_over: bool = False  # the rank has reported the end of its main thread


class Lost(Struct):
    """The process of a rank whose connection was lost, until it is attached again."""

    alone: bool = False  # it had no adapter, so its port was its process's own
    debugger_ended: bool = False  # its adapter has sent `terminated`, but the program may run on
    alive: bool = False  # seen running since the connection was lost
    look: int | None = None  # the last `WatchProcess`
    deadline: int | None = None  # to reconnect, where the process cannot be observed


class Fate(Struct):
    """The end of a rank's process, or what is known before it."""

    place: str = ""  # of its newest stop
    failure: str = ""  # the uncaught exception and its place
    held: float | None = None  # seconds that a failed process still waits for a debugger
    end: str = ""  # an exit code or a signal
    exited: bool = False  # the watcher of the process has seen its end
    vanished: bool = False  # its connection was lost without any event that announces its end
    wanted: bool = False  # the session ended it
    told: bool = False
    look: int | None = None  # the token of the look whether its process is over, too


class Rank(Struct, eq=False):
    """One rank, `(group, rank)`, over all processes and connections that it has in turn.

    Or a worker: a process that a rank, its `main`, has started, and that is debugged like a rank.
    """

    id: DebuggeeId
    endpoint: Endpoint
    phase: Phase = Phase.IDLE
    reason: str = ""
    connection: Connection = field(default_factory=Connection)
    timer: int | None = None  # of the current phase
    attempts: int = 0
    lost: Lost | None = None
    resting: bool = False  # just left: its adapter needs a moment before the next connection
    after_leaving: AfterLeaving = AfterLeaving.RETURN
    debugpy: str = ""  # its version, as it reports it
    process: str = ""  # identifies the process, as reported at attach
    patched: bool | None = None
    stop: Stop | None = None
    at_barrier: AtBarrier | None = None  # then its stop is not settled, unless it was paused there
    waits_for: str = ""  # for whom, where it was let run and waits for ranks that stand
    pausing: bool = False
    run: StepRun | None = None  # the current step
    last_run: StepRun | None = None  # its previous step
    deferred: list[Deferred] = field(default_factory=list)
    stepping: frozenset[int] = NO_THREADS  # its threads that are stepping
    last_thread: int | None = None  # the thread that it continued with, while it runs
    threads: dict[int, str] = field(default_factory=dict)
    home: int | None = None  # of these the one that its own row shows; None: its main thread
    exit_code: int | None = None
    fate: Fate = field(default_factory=Fate)
    main: Rank | None = None  # of a worker
    attach_overrides: Body = field(default_factory=lambda: NO_OVERRIDES)  # a worker's own
    begun: tuple[int | None, str] | None = None  # the process that has run on with us attached
    hidden: bool = False  # a child that is not debugged (yet): no row, and continued when attached
    numbers: dict[int, int] = field(default_factory=dict)  # of this rank's workers, by pid
    row: RankRow | None = None  # what `list` showed last; None: it has changed since
    row_beside: tuple[object, ...] = ()  # what is in `row` that changes without a move
    seen: RankRow | None = None  # the last row that any client has got
    news: set[str] = field(default_factory=set)  # its keys that differ from the last event `ranks`
    rank_id: RankId = ("", 0)  # itself, or the rank that this worker belongs to; from `id`

    def __post_init__(self) -> None:
        self.rank_id = rank_of(self.id)

    @property
    def number(self) -> int:
        """The global rank."""
        return self.id[1]

    @property
    def link(self) -> int | None:
        """The number of its open connection."""
        return self.connection.link

    @property
    def worker(self) -> int | None:
        """A worker's number; None for a rank."""
        return worker_of(self.id)

    @property
    def process_now(self) -> tuple[int | None, str]:
        """What tells its process from another of the same rank."""
        return self.endpoint.pid, self.endpoint.incarnation

    @property
    def held_back(self) -> bool:
        """Whether its process still waits for a debugger that its session has promised."""
        awaits = self.endpoint.traits.awaits_debugger and self.main is None
        return awaits and self.begun != self.process_now

    @property
    def stopped(self) -> bool:
        """Whether it is stopped at a place that is known, and does not continue by itself."""
        return self.stop is not None and self.stop.settled

    @property
    def absence(self) -> str:
        """Why it cannot be asked, where it is not attached."""
        return f"{self.state}: {self.reason}" if self.reason else f"is {self.state}"

    @property
    def wait(self) -> str:
        """`barrier 5/8` where it waits at one, else ''."""
        return str(self.at_barrier.round or "") if self.at_barrier else ""

    @property
    def state(self) -> str:
        """One of: waiting connecting running stopped pausing lost exited."""
        if self.phase.live:
            if self.stopped:
                return "stopped"
            pausing = self.pausing or (self.stop is not None and self.stop.paused)
            return "pausing" if pausing else "running"
        return "lost" if self.lost else self.phase.state
