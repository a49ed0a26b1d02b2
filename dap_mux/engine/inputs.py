"""Inputs of the engine: settings, and a small class for each event from outside.

Each message is one of these on its way in and one or two `outputs` on its way out; a `Struct`
is made in a tenth of a frozen dataclass's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from msgspec import Struct, field

from dap_mux.engine.admission import Token
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.messages import Message
from dap_mux.pure.rank_sets import Mesh, RankId

if TYPE_CHECKING:
    from dap_mux.pure.insight.numerics.diverge_against import RecordedRun
    from dap_mux.pure.insight.why.evidence import Process


class Settings(Struct, frozen=True):
    """Times in seconds. `owns_job`: the ranks were started by us, so a client may end them.
    `threads`: the rows of a rank: `main`, `user`, `all`, or `auto` (`user` where the source of the
    ranks knows their task threads, else `main`).
    `folder` stands for a client's workspace that it does not name.
    `lingers`: how long the session waits after its last rank for its launcher, or its pod, to
    start ranks again; inf: until the job is over.
    `swallows_exceptions`: the framework of ranks to come is known to, see `Traits`.
    `ranks_from_client`: the first controller's `attach` or `launch` says who the ranks are.
    `replays`: the job is a replay of one rank, which any client may have run anew to a place.
    `catch_nan`: ranks stop at values that are not finite; `locate`: and name the line.
    `catch_diverged`: they stop where parameters differ that they keep equal; `catch_unequal`: or an
    expression; `recorded`: or from those of another run.
    `key`: a secret by which ranks know this session again when its connection has broken.
    """

    view: str = "auto"
    scope: str = "auto"
    threads: str = "auto"
    classes_above: int = 64
    values_across_ranks: str = "off"
    settle: float = 0.05
    line_patience: float = 0.3  # of output: for the rest of a line, before its pieces are shown
    late_settle: float = 0.1
    step_grace: float = 0.6
    request_timeout: float = 5.0
    breakpoint_timeout: float = 5.0
    greeting_timeout: float = 3.0
    silence_timeout: float = 60.0
    release_after: float = 0.0  # s without a word of ours, in which ranks run on; 0: never
    barrier_timeout: float = 5.0  # after which users are told who is missing at a barrier
    reconnect_gap: float = 0.3
    backoff_first: float = 0.25
    backoff_most: float = 10.0
    leave_timeout: float = 2.0
    clock_patience: float = 0.0  # a stop that lasts longer threatens the job; 0: nobody is asked
    library_patience: float = 0.0  # after which ranks are asked what torch knows; 0: never
    redial_timeout: float = 15.0
    catch_nan: bool = False
    locate: bool = False
    catch_diverged: bool = False
    catch_unequal: str = ""
    recorded: RecordedRun | None = None
    owns_job: bool = False
    replays: bool = False
    lingers: float = 0.0
    swallows_exceptions: bool = False
    ranks_from_client: bool = False
    redirect_output: bool = False
    job_name: str = ""
    folder: str = ""
    seed: int = 0
    meshes: Mapping[str, Mesh] = field(default_factory=dict)
    default_group: str = "job"
    key: str = ""

    def __repr__(self) -> str:
        """Say everything but the secret."""
        shown = (name for name in self.__struct_fields__ if name != "key")
        return f"Settings({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


class ClientConnected(Struct, frozen=True, gc=False):
    """A client opened a connection; `client` is a number of the shell's choosing, never reused.

    Who is not `trusted` is not heard before it has shown the `token`.
    """

    client: int
    trusted: bool = True
    token: Token | None = None


class ClientSaid(Struct, frozen=True, gc=False):
    """A well-formed message from a client."""

    client: int
    message: Message


class ClientBabbled(Struct, frozen=True, gc=False):
    """A client sent a message that is no DAP, and its connection is to end for it.

    `seq` and `command` are what could be read of a request; None where there is nothing to answer.
    """

    client: int
    problem: str
    seq: int | None
    command: str = ""


class ClientGone(Struct, frozen=True, gc=False):
    """A client's connection is closed, by whomever."""

    client: int


class ClientStalled(Struct, frozen=True, gc=False):
    """A client does not read what it is sent: so much waits that more must not be added to it."""

    client: int


class ClientReads(Struct, frozen=True, gc=False):
    """A client that was stalled has read most of what waited."""

    client: int


class RankKnown(Struct, frozen=True, gc=False):
    """A rank exists and this is where it listens; said again when its endpoint or pid changes."""

    rank: RankId
    endpoint: Endpoint


class RankExited(Struct, frozen=True, gc=False):
    """The rank's process ended, as whoever started it saw; `code` is -n for signal n.

    None where only its end was seen: the pod or the allocation is no more. `how`: the end in
    words, as the system shows it. `wanted`: we ended it.
    """

    rank: RankId
    code: int | None
    how: str = ""
    wanted: bool = False


class RankFailed(Struct, frozen=True, gc=False):
    """An uncaught exception is about to end the rank: `failure` is its name and place.

    `held`: it is held for a debugger, so many seconds more; said again as they pass.
    """

    rank: RankId
    failure: str
    held: float | None = None


class JobEnded(Struct, frozen=True, gc=False):
    """The launcher of the ranks ended (`Settings.lingers`), or the job that has them.

    `code` is what a shell would show, None where nobody knows it. Ranks that are not connected have
    ended with it.
    """

    code: int | None


class JobRestarted(Struct, frozen=True, gc=False):
    """Every rank is started again (`RankKnown` said so of each), or `problem` says why not."""

    problem: str = ""


class RanksFound(Struct, frozen=True, gc=False):
    """The ranks that a client's `attach` or `launch` named are known (`RankKnown`), or why not.

    `problem`: "" for none; an exception is one that was not foreseen, and is logged. `settings`
    are those with the client's own attributes in them; None leaves all as it is.
    """

    number: int
    problem: str | Exception = ""
    settings: Settings | None = None


class LinkUp(Struct, frozen=True, gc=False):
    """The connection asked for by `Connect` is established."""

    link: int


class LinkSaid(Struct, frozen=True, gc=False):
    """A well-formed message from a rank."""

    link: int
    message: Message


class LinkDown(Struct, frozen=True, gc=False):
    """The connection failed or ended; `refused` when nothing listens there.

    `over`: the process that was to be met there again has ended, as this machine's system says.
    """

    link: int
    reason: str
    refused: bool = False
    over: bool = False


class ProcessSeen(Struct, frozen=True, gc=False):
    """Answers `WatchProcess`, and again when a process that was `alive` has ended.

    `alive` is None where the process is not of this machine, or cannot be seen from here.
    """

    token: int
    alive: bool | None


class ProcessesRead(Struct, frozen=True, gc=False):
    """Answers `ReadProcesses`; those that are not of this machine are left out."""

    token: int
    processes: dict[str, Process]


class Deadline(Struct, frozen=True, gc=False):
    """A deadline asked for by `SetDeadline` has passed."""

    token: int


class LocalHash(Struct, frozen=True, gc=False):
    """Answers `HashLocal`: SHA-256 by path, "" where there is no such file on this machine.

    Nothing of a client whose connection comes from elsewhere; one from here may still be the end
    of a tunnel.
    """

    token: int
    digests: dict[str, str]


class LocalText(Struct, frozen=True, gc=False):
    """Answers `ReadLocal`: "" where there is no such file on this machine, or it is too large."""

    token: int
    text: str


class Listening(Struct, frozen=True, gc=False):
    """The session listens for clients at this `HOST:PORT`."""

    address: str


class Notice(Struct, frozen=True, gc=False):
    """The session has something to say that a person at the editor should read.

    `lasting`: whoever attaches later is told as well.
    """

    text: str
    lasting: bool = False


class Recorded(Struct, frozen=True):
    """The ranks are a recording's. `why` was answered so at the stop that is shown, or {}.

    `title`: of that stop. `end`: how the job ended, in a sentence. `output`: bodies of events for
    whoever attaches.
    """

    title: str
    why: Mapping[str, object]
    end: str
    output: Sequence[Mapping[str, str]] = ()


class Shutdown(Struct, frozen=True, gc=False):
    """The session is asked to end: release every rank, say goodbye to every client."""

    reason: str


OfClient: TypeAlias = ClientConnected | ClientBabbled | ClientGone | ClientStalled | ClientReads
Input: TypeAlias = (
    OfClient
    | ClientSaid
    | LinkSaid
    | RankKnown
    | RankExited
    | RankFailed
    | LinkUp
    | LinkDown
    | ProcessSeen
    | ProcessesRead
    | Deadline
    | LocalHash
    | LocalText
    | JobEnded
    | JobRestarted
    | RanksFound
    | Listening
    | Notice
    | Recorded
    | Shutdown
)


def assert_never(event: NoReturn) -> NoReturn:
    """Let mypy prove that a `match` leaves no input out (`typing` has this from Python 3.11)."""
    raise AssertionError(event)
