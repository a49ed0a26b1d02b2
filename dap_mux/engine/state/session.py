"""The state that the engine's parts share, and the few ways in which they act on the world."""

from __future__ import annotations

import logging
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dap_mux.engine.injected_sources import InjectedSources
from dap_mux.engine.outputs import CancelDeadline, Log, Output, SetDeadline
from dap_mux.engine.settings import Settings
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.handles import Handles
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.pathmap import PathMap
from dap_mux.rank_sets import Mesh, RankId, RankSet, World
from dap_mux.rank_sets.debuggees import DebuggeeId


@dataclass
class Flow:
    """How far the session as a whole has come."""

    configured: bool = False  # the first controller has configured: ranks may run
    began: bool = False  # so they have: their programs run
    restarting: bool = False  # the old ranks are being ended, and the new ones are to come
    job_over: bool = False  # whoever starts the ranks starts none any more
    job_code: int | None = None  # of the launcher, once it has ended
    ended: bool = False
    process: dict[str, Any] | None = None  # the job's `process` event, once a rank has told it


MAX_TRACEBACKS: Final = 100  # as many are logged whole, for who brings them about may go on and on


class SessionState:
    """Ranks, clients, handles and deadlines. Outputs collect in `out` until they are drained.

    `ranks` are all that is debugged, workers too; `mains` are the ranks alone.
    """

    def __init__(self, injected: InjectedSources, settings: Settings) -> None:
        self.injected = injected
        self.adopt(settings)
        self.ranks: dict[DebuggeeId, Rank] = {}
        self.mains: dict[RankId, Rank] = {}
        self.several_groups = False
        self.several_hosts = False
        self.links: dict[int, Rank] = {}
        self.clients: dict[int, Client] = {}
        self.handles = Handles()
        self.names: dict[str, RankSet] = {}  # what `@name` means
        self.compiled: dict[tuple[str, int], str] = {}  # breakpoints that torch.compile passes by
        self.found_meshes: dict[str, Mesh] = {}  # by group: what its ranks say, and what is given
        self.path_map = PathMap()  # the first controller's
        self.folders: dict[RankId, str] = {}  # where ranks run, as far as mappings need it
        self.mapped: set[RankId] = set()  # ranks that were given mappings
        self.flow = Flow()
        self.out: list[Output] = []
        self.random = random.Random(settings.seed)
        self.cause: ClientRequest | None = None  # what is done now is done on its behalf
        self._timers: dict[int, tuple[Callable[[], None], ClientRequest | None]] = {}
        self.faults = 0
        self._numbers = 0

    def adopt(self, settings: Settings) -> None:
        """Go by these from now on; view and scope can be changed again by request."""
        self.settings = settings
        self.view = settings.view
        self.scope = settings.scope

    def number(self) -> int:
        """Return a number never given out before."""
        self._numbers += 1
        return self._numbers

    def after(self, seconds: float, then: Callable[[], None]) -> int:
        """Ask for a deadline; `then` runs when it passes, unless it is cancelled."""
        token = self.number()
        self._timers[token] = then, self.cause
        self.out.append(SetDeadline(token, seconds))
        return token

    def cancel(self, token: int | None) -> None:
        """Forget a deadline; None and passed ones do no harm."""
        if token is not None and self._timers.pop(token, None) is not None:
            self.out.append(CancelDeadline(token))

    def fire(self, token: int) -> None:
        """A deadline passed; a cancelled one is ignored."""
        then, self.cause = self._timers.pop(token, (None, None))
        if then:
            then()

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

    def guard(self, call: Callable[[], None], failed: Callable[[Exception], object]) -> bool:
        """Call it; False where it has failed, with what nobody has foreseen or otherwise.

        No other code of the engine catches what it cannot name. `failed` is told of it.
        """
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever it is, others go on
            failed(error)
            return False
        return True

    def fault(self, error: Exception) -> str:
        """Log an exception that nobody has foreseen; return what to tell of it."""
        self.faults += 1
        what = f"internal error {self.faults} ({type(error).__name__}: {error})"
        trace = "".join(traceback.format_exception(error)) if self.faults <= MAX_TRACEBACKS else ""
        self.log(logging.ERROR, "engine", f"{what}\n{trace}".rstrip())
        return f"{what}: this is a defect of dap-mux; the session's log has more under that number"

    def add(self, rank: Rank) -> None:
        """A rank or a worker is new to the session."""
        self.ranks[rank.id] = rank
        if rank.main is None:
            self.mains[rank.rank_id] = rank

    def remove(self, rank: Rank) -> None:
        """Forget a rank or a worker."""
        self.ranks.pop(rank.id, None)
        if rank.main is None:
            self.mains.pop(rank.rank_id, None)

    def workers_of(self, main: Rank) -> list[Rank]:
        """Return the workers of a rank."""
        return [rank for rank in self.sorted_ranks() if rank.main is main]

    def ranks_changed(self) -> None:
        """A rank is new, has moved, or is forgotten: what tells ranks apart may have changed."""
        self.several_groups = len({id[0] for id in self.ranks}) > 1
        self.several_hosts = len({host_of(rank) for rank in self.ranks.values()} - {""}) > 1

    def sorted_ranks(self) -> list[Rank]:
        """Return every known rank by (group, rank), each before its workers."""
        return [self.ranks[id] for id in sorted(self.ranks)]

    def sorted_mains(self) -> list[Rank]:
        """Return every known rank by (group, rank), without workers."""
        return [self.mains[id] for id in sorted(self.mains)]

    def not_gone(self) -> list[RankId]:
        """Return the ranks whose processes are not known to have ended."""
        return [id for id in sorted(self.mains) if self.mains[id].phase is not Phase.GONE]

    def controllers(self) -> Iterator[Client]:
        """Yield the configured controllers: those who are told what happens."""
        return (client for client in list(self.clients.values()) if client.listening)

    @property
    def single(self) -> bool:
        """One rank in the session: the plain case, which feels like debugpy itself."""
        return len(self.mains) == 1

    @property
    def shows_threads(self) -> bool:
        """Every Python thread of a rank is a row, not only the one that stopped."""
        return self.single or self.settings.threads == "all"

    def default_group(self) -> str:
        """Return the group that plain numbers mean: the only one, or the session's default."""
        groups = {id[0] for id in self.ranks}
        return groups.pop() if len(groups) == 1 else self.settings.default_group

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """Each group's mesh as far as it is known: given, or read from its ranks."""
        return {**self.settings.meshes, **self.found_meshes}

    def world(self) -> World:
        """Return what rank sets are evaluated against, now."""
        return World(
            ranks=tuple(sorted(self.mains)),
            meshes=self.meshes,
            states=RankStates(self.mains),
            names=self.names,
            default_group=self.settings.default_group,
        )


class RankStates(Mapping[RankId, str]):
    """The ranks' states, looked up when they are asked for: few rank sets speak of them."""

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
