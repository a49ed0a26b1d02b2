"""What the engine asks for: the only effects there are, one small class each."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from dap_mux.pure.rank_sets import RankId


class ToClient(Struct, frozen=True, gc=False):
    """Send this message body to the client."""

    client: int
    body: bytes


class ToRank(Struct, frozen=True, gc=False):
    """Send this message body over the link."""

    link: int
    body: bytes


class ToRanks(Struct, frozen=True, gc=False):
    """Send this message body over each of these links."""

    body: bytes
    links: list[int]


class Admitted(Struct, frozen=True, gc=False):
    """The client has shown the token: the limits for strangers no longer bind it."""

    client: int


class CloseClient(Struct, frozen=True, gc=False):
    """Close the client's connection once everything sent to it is out."""

    client: int


class Connect(Struct, frozen=True, gc=False):
    """Open a connection to a rank; answer with `LinkUp` or `LinkDown`.

    `dials`: take up the call that it has made. `process`: the one that was met there before, as
    `injected.attach.process_identity` has it; "" for none.
    """

    link: int
    rank: RankId
    host: str
    port: int
    dials: bool = False
    process: str = ""


class CloseLink(Struct, frozen=True, gc=False):
    """Close the link after what was sent; never within a frame."""

    link: int


class WatchProcess(Struct, frozen=True, gc=False):
    """Does this process still run? Answered with `ProcessSeen(token)`, and again at its end.

    `process` is as `injected.attach.process_identity` has it.
    """

    token: int
    process: str


class UnwatchProcess(Struct, frozen=True, gc=False):
    """Stop watching that process; a late `ProcessSeen` does no harm."""

    token: int


class ReadProcesses(Struct, frozen=True, gc=False):
    """Read the state of these processes, always answered with `ProcessesRead(token)`.

    Each is as `injected.attach.process_identity` has it; or the pid of a process of this machine,
    or `:5678`, the port that one listens on.
    """

    token: int
    processes: tuple[str, ...]


class SetDeadline(Struct, frozen=True, gc=False):
    """Answer with `Deadline(token)` after `seconds`."""

    token: int
    seconds: float


class CancelDeadline(Struct, frozen=True, gc=False):
    """The deadline is not needed any more; a late one does no harm."""

    token: int


class FindRanks(Struct, frozen=True, gc=False):
    """A client's `attach` or `launch` says who the ranks are; answer with `RanksFound`."""

    number: int
    command: str
    arguments: dict[str, Any]


class HashLocal(Struct, frozen=True, gc=False):
    """Hash these files of a client; always answered with `LocalHash(token)`."""

    token: int
    client: int
    paths: tuple[str, ...]


class ReadLocal(Struct, frozen=True, gc=False):
    """Read this file of a client; always answered with `LocalText(token)`."""

    token: int
    client: int
    path: str


class EndJob(Struct, frozen=True, gc=False):
    """A client asked to end the job: whoever started the ranks ends them."""


class RestartJob(Struct, frozen=True, gc=False):
    """A client asked for the job anew: end every rank, start each again and tell of it.

    `to`: where a replay is to stop then.
    """

    to: str = ""


class Paused(Struct, frozen=True, gc=False):
    """The debugger holds some rank stopped from now on (`stopped`), or none any more."""

    stopped: bool


class Finished(Struct, frozen=True, gc=False):
    """Every rank is gone and the clients were told; the session is over."""


class Tell(Struct, frozen=True, gc=False):
    """Something that the person at the session's terminal must not overlook."""

    text: str


class Log(Struct, frozen=True, gc=False):
    """A line for the session's log; `rank` where it is about one."""

    level: int
    component: str
    text: str
    rank: RankId | None = None


Output: TypeAlias = (
    ToClient
    | ToRank
    | ToRanks
    | Admitted
    | CloseClient
    | Connect
    | CloseLink
    | WatchProcess
    | ReadProcesses
    | UnwatchProcess
    | SetDeadline
    | CancelDeadline
    | FindRanks
    | HashLocal
    | ReadLocal
    | EndJob
    | RestartJob
    | Paused
    | Finished
    | Tell
    | Log
)
