"""The state that the engine's parts share, with deadlines, logging and outputs."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeAlias

from msgspec import Raw, Struct, field

from dap_mux.engine.inputs import LocalHash, LocalText, ProcessesRead, Recorded, Settings
from dap_mux.engine.outputs import CancelDeadline, Log, Output, SetDeadline, ToRanks
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.handles import Handles
from dap_mux.engine.state.rank import Connection, Pending, Rank, Stop
from dap_mux.pure.pathmap import PathMap
from dap_mux.pure.protocol.messages import Body, Request, encode
from dap_mux.pure.rank_sets import Mesh, RankId, RankSet, World
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import InjectedSources

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - with a seed

Postponed: TypeAlias = "tuple[Callable[[], None], ClientRequest | None]"
"""A deferred call, and the request that it is made for."""


class Broadcast(Struct):
    """A request to many ranks: encoded once, and anew for a rank that has had a later one."""

    command: Final[str]
    arguments: Final[Raw | dict[str, Any]]
    seq: int = 0
    body: bytes = b""


class Flow(Struct):
    """The progress of the session as a whole."""

    wanted: bool = False  # a controller has asked to attach
    left: bool = False  # the last of them has left, so newcomers wait for nobody
    arguments: Body = field(default_factory=dict)  # of the first controller's `attach`, for ranks
    configured: bool = False  # the first controller is configured: ranks may run
    began: bool = False  # the ranks' programs run
    restarting: bool = False  # the old ranks are ending, the new ones have not come
    job_over: bool = False  # no more ranks will be started
    job_code: int | None = None  # of the launcher, once it has ended
    ended: bool = False
    process: dict[str, Any] | None = None  # the job's `process` event, once a rank has sent one

    @property
    def debugs_children(self) -> bool:
        """Whether processes that ranks start are debugged."""
        return self.arguments.get("subProcess") is True


MAX_TRACEBACKS: Final = 100  # logged in full: a peer may cause errors without end


class SessionState:
    """Ranks, clients, handles and deadlines. Outputs collect in `out` until they are drained.

    `ranks` includes workers; `mains` does not.
    """

    def __init__(self, injected: InjectedSources, settings: Settings) -> None:
        self.injected = injected
        self.adopt(settings)
        self.recorded: Recorded | None = None  # of ranks that run: None
        self.address = ""  # HOST:PORT where clients connect; "" until it is known
        self.ranks: dict[DebuggeeId, Rank] = {}
        self.mains: dict[RankId, Rank] = {}
        self._sorted: list[Rank] | None = None  # `ranks` in order, until one comes or goes
        self._workers: dict[DebuggeeId, list[Rank]] = {}  # of each rank, in no order
        self._live: set[DebuggeeId] = set()
        self._world: World | None = None  # the last one, while it holds
        self._several_hosts: bool | None = None  # None: not known since a rank came or moved
        self.links: dict[int, Rank] = {}
        self.touched: dict[Rank, None] = {}  # their rows have changed, and nobody was notified yet
        self.looks: dict[int, Rank] = {}  # lost ranks whose processes are watched, by token
        self.clients: dict[int, Client] = {}
        self.handles = Handles()
        self.names: dict[str, RankSet] = {}  # named sets, by name
        self.aliases: dict[RankId, RankId] = {}  # ranks by further names; see `World`
        # Warnings for breakpoints that torch.compile skips.
        self.compiled: dict[tuple[str, int], str] = {}
        self.found_meshes: dict[str, Mesh] = {}  # by group: given, or read from its ranks
        self.path_map = PathMap()  # the first controller's
        self.folders: dict[RankId, str] = {}  # ranks' working folders, if mappings need them
        self.mapped: set[RankId] = set()  # ranks that were given mappings
        self.flow = Flow()
        self.out: list[Output] = []
        self.cause: ClientRequest | None = None  # the request that is being handled
        self.postponed: list[Postponed] = []
        self._timers: dict[int, tuple[Callable[[], None], ClientRequest | None]] = {}
        self._shell_asked: dict[int, Callable[[Any], None]] = {}
        self.lasting: list[str] = []  # what clients are told when they attach
        self.faults = 0
        self._numbers = 0
        self._seq = 0

    @cached_property
    def random(self) -> Random:
        """What spreads the attempts to connect."""
        from random import Random  # noqa: TID251 - with a seed

        return Random(self.settings.seed)

    def adopt(self, settings: Settings) -> None:
        """Use these settings from now on; requests can change view and scope again."""
        self.settings = self.own_settings = settings
        self._world = None
        self.view = settings.view
        self.comm = ""  # the first client's attribute
        self.scope = settings.scope

    def next_seq(self, connection: Connection) -> int:
        """Return the `seq` of the next message on a connection.

        All ranks share one count, so that a message to many of them is the same bytes for each, and
        equal frames in return are equal answers. On one connection it only grows; debugpy's adapter
        and pydevd repeat a `seq` without looking at gaps.
        """
        self._seq = connection.seq = self._seq + 1
        return self._seq

    def send_shared(self, message: Broadcast, connection: Connection, pending: Pending) -> None:
        """Send a rank what others get, too. Lean: this is done a thousand times at once."""
        assert connection.link is not None
        if message.seq <= connection.seq:
            message.seq = self.next_seq(connection)
            message.body = encode(Request(message.seq, message.command, message.arguments))
        connection.seq = message.seq
        connection.pending[message.seq] = pending
        out = self.out
        last = out[-1] if out else None
        if type(last) is ToRanks and last.body is message.body:
            last.links.append(connection.link)
        else:
            out.append(ToRanks(message.body, [connection.link]))

    def number(self) -> int:
        """Return a number that was never returned before."""
        self._numbers += 1
        return self._numbers

    def after(self, seconds: float, then: Callable[[], None]) -> int:
        """Request a deadline; `then` runs when it passes, unless it is cancelled."""
        token = self.number()
        self._timers[token] = then, self.cause
        self.out.append(SetDeadline(token, seconds))
        return token

    def later(self, call: Callable[[], None], cause: ClientRequest | None = None) -> None:
        """Call it once the present call is over, on behalf of `cause`, under a guard of its own.

        For those who wait for the same: an exception in one does not keep the others from theirs.
        """
        self.postponed.append((call, cause))

    def cancel(self, token: int | None) -> None:
        """Cancel a deadline; None and passed ones are ignored."""
        if token is not None and self._timers.pop(token, None) is not None:
            self.out.append(CancelDeadline(token))

    def fire(self, token: int) -> None:
        """Run the callback of a deadline that has passed, unless it was cancelled."""
        then, self.cause = self._timers.pop(token, (None, None))
        if then:
            then()

    def ask_shell(self, question: Callable[[int], Output], then: Callable[[Any], None]) -> None:
        """Put out a question, given its number; `then` takes the input that answers it."""
        token = self.number()
        self._shell_asked[token] = then
        self.out.append(question(token))

    def shell_answered(self, event: LocalHash | LocalText | ProcessesRead) -> None:
        """The shell has answered; what is not awaited is dropped."""
        then = self._shell_asked.pop(event.token, None)
        if then:
            then(event)

    @property
    def deadlines(self) -> int:
        """How many deadlines are open (a leak check)."""
        return len(self._timers)

    def log(self, level: int, component: str, text: str, rank: Rank | None = None) -> None:
        """Write a line to the session's log."""
        about = f"worker {rank.worker}: {text}" if rank and rank.worker is not None else text
        self.out.append(Log(level, component, about, rank.rank_id if rank else None))

    def warn(self, component: str, text: str, rank: Rank | None = None) -> None:
        """Write a warning to the session's log."""
        self.log(logging.WARNING, component, text, rank)

    def fault(self, error: Exception) -> str:
        """Log an unexpected exception; return the text for the client."""
        self.faults += 1
        what = f"internal error {self.faults} ({type(error).__name__}: {error})"
        trace = "".join(traceback.format_exception(error)) if self.faults <= MAX_TRACEBACKS else ""
        self.log(logging.ERROR, "engine", f"{what}\n{trace}".rstrip())
        return f"{what}: this is a bug in dap-mux; the session's log has more under that number"

    # What `list` shows of a rank

    def touch(self, rank: Rank) -> None:
        """Mark a rank as changed: the followers are notified when the input has been handled.

        A hidden child has no row, so there is nothing to follow.
        """
        rank.row = None
        if not rank.hidden:
            self.touched[rank] = None

    def set_stop(self, rank: Rank, stop: Stop | None) -> None:
        """Change a rank's stop. One that has not settled is not shown, and so changes nothing."""
        was_shown, rank.stop = rank.stopped, stop
        if was_shown or stop is None or stop.settled:
            self.touch(rank)

    def set_pausing(self, rank: Rank, pausing: bool) -> None:
        """Note that a rank has been asked to stop, or that this is over."""
        if rank.pausing is not pausing:
            rank.pausing = pausing
            self.touch(rank)

    def set_reason(self, rank: Rank, reason: str) -> None:
        """Change why a rank is in its phase."""
        if rank.reason != reason:
            rank.reason = reason
            self.touch(rank)

    # Ranks

    def add(self, rank: Rank) -> None:
        """Add a rank or a worker to the session, in place of any with the same id."""
        self.remove(rank)
        self.ranks[rank.id] = rank
        self.touch(rank)
        self.phase_changed(rank)
        if rank.main is None:
            self.mains[rank.rank_id] = rank
        else:
            self._workers.setdefault(rank.main.id, []).append(rank)

    def remove(self, rank: Rank) -> None:
        """Remove a rank or a worker."""
        self._sorted = self._several_hosts = None
        self._live.discard(rank.id)
        self.touch(rank)
        known = self.ranks.pop(rank.id, None)
        if rank.main is None:
            self._world = None
            self.mains.pop(rank.rank_id, None)
        elif known:
            self._workers[rank.main.id].remove(known)

    def phase_changed(self, rank: Rank) -> None:
        """Its phase is another than before."""
        if rank.phase.live and self.ranks.get(rank.id) is rank:
            self._live.add(rank.id)
        else:
            self._live.discard(rank.id)

    @property
    def live(self) -> int:
        """How many ranks are attached, with their workers."""
        return len(self._live)

    def workers_of(self, main: Rank) -> list[Rank]:
        """Return the workers of a rank."""
        return sorted(self._workers.get(main.id, ()), key=lambda worker: worker.id)

    def ranks_changed(self) -> None:
        """A rank is new, has moved or is gone: whether names need the host is found out again."""
        self._several_hosts = None

    @property
    def several_groups(self) -> bool:
        """Whether names need the group."""
        return len(self.world().numbers) > 1

    @property
    def several_hosts(self) -> bool:
        """Whether names need the host."""
        if self._several_hosts is None:
            hosts = {host_of(rank) for rank in self.ranks.values()} - {""}
            self._several_hosts = len(hosts) > 1
        return self._several_hosts

    def sorted_ranks(self) -> list[Rank]:
        """Return every known rank by (group, rank), each before its workers."""
        if self._sorted is None:
            self._sorted = [self.ranks[id] for id in sorted(self.ranks)]
        return list(self._sorted)

    def sorted_mains(self) -> list[Rank]:
        """Return every known rank by (group, rank), without workers."""
        return [self.mains[id] for id in self.world().ranks]

    def live_ranks(self) -> list[Rank]:
        """Return every attached rank by (group, rank), each before its workers."""
        return [rank for rank in self.sorted_ranks() if rank.phase.live]

    def attached(self) -> list[Client]:
        """Return who is attached as a controller, configured or not."""
        return [client for client in self.clients.values() if client.role == "controller"]

    def controllers(self) -> Iterator[Client]:
        """Yield the configured controllers: the clients that get events."""
        return (client for client in self.attached() if client.configured)

    @property
    def single(self) -> bool:
        """Whether the session has one rank, and so should behave like debugpy itself."""
        return len(self.mains) == 1

    def rows_of(self, rank: Rank) -> str:
        """Return which of its Python threads have rows: `main` (one row), `user` or `all`."""
        asked = self.settings.threads
        if asked == "auto":
            asked = "user" if rank.endpoint.traits.user_threads else "main"
        return "all" if self.single and asked == "main" else asked

    def shows_threads(self, rank: Rank) -> bool:
        """Whether a rank may have several rows, not only one for the thread that stopped."""
        return self.rows_of(rank) != "main"

    def default_group(self) -> str:
        """Return the group that plain numbers mean: the only one, or the session's default."""
        groups = self.world().numbers
        return next(iter(groups)) if len(groups) == 1 else self.settings.default_group

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """Each group's mesh, if known: given, or read from its ranks."""
        return {**self.settings.meshes, **self.found_meshes}

    def mesh_of(self, group: str) -> Mesh | None:
        """Return one group's mesh, if known."""
        return self.found_meshes.get(group) or self.settings.meshes.get(group)

    def world(self) -> World:
        """Return what rank sets are evaluated against: the same until a rank or a mesh is new."""
        meshes = self.meshes
        if self._world is None or self._world.meshes != meshes:
            self._world = World(
                ranks=tuple(sorted(self.mains)),
                meshes=meshes,
                states=RankStates(self.mains),
                names=self.names,
                default_group=self.settings.default_group,
                aliases=dict(self.aliases),
            )
        return self._world

    def also_called(self, name: RankId, rank: RankId) -> bool:
        """A rank has a further name; return whether that is news."""
        if self.aliases.get(name) == rank:
            return False
        self.aliases[name] = rank
        self._world = None
        return True


class RankStates(Mapping[RankId, str]):
    """The ranks' states, computed on access: few rank sets use them."""

    def __init__(self, ranks: Mapping[RankId, Rank]) -> None:
        self._ranks = ranks

    def __getitem__(self, rank: RankId) -> str:
        return self._ranks[rank].state

    def __iter__(self) -> Iterator[RankId]:
        return iter(self._ranks)

    def __len__(self) -> int:
        return len(self._ranks)


def host_of(rank: Rank) -> str:
    """Return the name that users know the rank's host by."""
    return rank.endpoint.host_name or rank.endpoint.host


# Signals: one part of the engine tells others of something without knowing them.

P = ParamSpec("P")
RowsChanged: TypeAlias = Callable[[Sequence[Rank]], None]
"""Takes note of ranks whose row in `list` may have changed since the last call.

`Engine.receive` calls these once an input has been handled, so no rank is half changed.
"""


class Listeners(Generic[P]):
    """The callbacks of one signal. Each part adds its own when it is constructed."""

    def __init__(self) -> None:
        self._listeners: list[Callable[P, None]] = []

    def add(self, listener: Callable[P, None]) -> None:
        """Add a callback; callbacks are called in the order in which they were added."""
        self._listeners.append(listener)

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all of them."""
        for listener in self._listeners:
            listener(*args, **kwargs)
