"""The doctor's observations: endpoints of ranks, also probed; sessions; configurations."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from dap_mux.client import ConnectionLost, DapClient, RequestFailed
from dap_mux.cluster.records import DEFAULT_GROUP
from dap_mux.frontends.doctor.machine import Configuration, Machine, Process, Python
from dap_mux.pure.endpoint import is_loopback
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.system.procfs import TcpSocket
from dap_mux.system.session_files import SessionFile

# Probes an endpoint with a DAP conversation that is harmless to debugpy.
#
# It goes as far as `attach`, since an adapter whose client leaves earlier closes its port forever,
# and no further: `configurationDone` would start a rank that waits for a client (both measured).
# debugpy sends events to each new client; a dap-mux session has none before `attach`.

CONNECT_TIMEOUT_S: Final = 5.0
GREETING_TIMEOUT_S: Final = 2.0  # for debugpy's first event
DEBUGGEE_TIMEOUT_S: Final = (
    3.0  # s for it to say that it has met its debuggee; not said while it is taken
)
REPLY_TIMEOUT_S: Final = 10.0  # s
REST_S: Final = 0.3  # s that its adapter needs before the next connection
TAKEN: Final = "already being debugged"  # debugpy's message
# Raised by decoding what is not DAP.
MALFORMED: Final = (PeerFault, AttributeError, LookupError, TypeError, ValueError)
# With `dapMux` a rank of ours needs no adapter for us, and says so (dap_mux/rank/own_port.py).
SERVED: Final = "dapMuxServed"
_ABOUT_US: Final = {
    "clientID": "dap-mux doctor",
    "adapterID": "debugpy",
    "pathFormat": "path",
    "dapMux": {},
}
Outcome: TypeAlias = Literal[
    "refused",
    "unreachable",
    "hung up",
    "wedged",
    "stranger",
    "session",
    "taken",
    "refuses",
    "fine",
]


@dataclass(frozen=True)
class ProbeResult:
    """The result. `words`: a message or an error; `version`: debugpy's, "" if unknown."""

    outcome: Outcome
    words: str = ""
    version: str = ""


async def probe(host: str, port: int) -> ProbeResult:
    """Find out whether debugpy responds at an address, without harming it."""
    try:
        client = await asyncio.wait_for(DapClient.connect(host, port), CONNECT_TIMEOUT_S)
    except ConnectionRefusedError:
        return ProbeResult("refused")
    except (OSError, asyncio.TimeoutError) as error:
        return ProbeResult(
            "unreachable", str(error) or f"no response within {CONNECT_TIMEOUT_S:g} s"
        )
    try:
        return ProbeResult(*await _converse(client), _version(client.events))
    except MALFORMED as error:
        return ProbeResult("stranger", str(error))
    except ConnectionLost as error:
        return ProbeResult("hung up", str(error))
    finally:
        with suppress(ConnectionLost, OSError, *MALFORMED):
            await client.close()
        await asyncio.sleep(REST_S)


async def _converse(client: DapClient) -> tuple[Outcome, str]:
    try:
        try:
            await client.request("initialize", _ABOUT_US, timeout=REPLY_TIMEOUT_S)
        except RequestFailed as refusal:
            return _refused(str(refusal))
        with suppress(TimeoutError):
            await client.wait_for(
                lambda: bool(client.events), timeout=GREETING_TIMEOUT_S, what="greeting"
            )
        if client.events:
            return await _attach(client)
        await client.disconnect(timeout=REPLY_TIMEOUT_S)
    except TimeoutError as error:
        return "wedged", str(error)
    return "session", ""


def _refused(message: str) -> tuple[Outcome, str]:
    return ("taken" if TAKEN in message else "refuses"), message


async def _attach(client: DapClient) -> tuple[Outcome, str]:
    if not any(one["event"] == SERVED for one in client.events):
        with suppress(TimeoutError):
            await client.wait_event("debugpySockets", _has_met, timeout=DEBUGGEE_TIMEOUT_S)
    attached = client.send("attach", {"subProcess": False})
    await client.wait_for(
        lambda: attached.done() or any(one["event"] == "initialized" for one in client.events),
        timeout=REPLY_TIMEOUT_S,
        what="answer to attach",
    )
    answer = attached.result() if attached.done() else {"success": True}
    refusal = "" if answer.get("success") else str(answer.get("message"))
    with suppress(RequestFailed):
        await client.disconnect(timeout=REPLY_TIMEOUT_S)
    return _refused(refusal) if refusal else ("fine", "")


def _has_met(body: dict[str, Any]) -> bool:
    return any(one.get("internal") for one in body.get("sockets") or [])


def _version(events: list[dict[str, Any]]) -> str:
    for body in (event.get("body") or {} for event in events):
        version = (body.get("data") or {}).get("packageVersion") or body.get("debugpy")
        if version:
            return str(version)
    return ""


# A finding of the doctor: a cause, its evidence and a fix.


@dataclass(frozen=True)
class Finding:
    """`cause` is a stable name. `evidence`: observations, one sentence each, never guesses.

    `fix`: what to do, one line each; `paste`: text to copy, "" for none. `ranks`: a folded set, ""
    for none; `where`: an endpoint, file or session.
    """

    cause: str
    summary: str
    evidence: tuple[str, ...]
    fix: tuple[str, ...]
    paste: str = ""
    ranks: str = ""
    where: str = ""


# A snapshot of a running session: its ranks, its breakpoints, and values from its ranks.

Json: TypeAlias = dict[str, Any]
Join: TypeAlias = Callable[[SessionFile], AbstractAsyncContextManager[DapClient]]
REQUEST_TIMEOUT_S: Final = 15.0
ATTACHED: Final = ("running", "stopped", "pausing")


@dataclass
class SessionSnapshot:
    """A session. `ranks` and `breakpoints` are the entries of `list` and `breakpoints`."""

    address: str
    pid: int
    client: DapClient
    ranks: list[Json]
    breakpoints: list[Json]

    @property
    def attached(self) -> list[Json]:
        """The entries of the ranks that can evaluate; workers are left out."""
        return [
            entry
            for entry in self.ranks
            if entry["state"] in ATTACHED and entry.get("worker") is None
        ]

    @property
    def default_group(self) -> str:
        """The group of plain rank numbers."""
        groups = {str(entry["group"]) for entry in self.ranks}
        return groups.pop() if len(groups) == 1 else DEFAULT_GROUP

    def named(self, entries: list[Json]) -> str:
        """Return the ranks as a folded set."""
        return fold([id_of(entry) for entry in entries], self.default_group)

    async def ask(self, expression: str, ranks: str = "") -> dict[str, object]:
        """Evaluate an expression in these ranks ("": all attached ones); values by folded set.

        It must not need a frame: running ranks have none. Ranks that fail are left out.
        """
        attached = self.attached
        if not attached:
            return {}
        asked = {
            "ranks": ranks or self.named(attached),
            "command": f"p {expression}",
            "timeout": 5.0,
        }
        body = await self.client.request("cast", asked, timeout=REQUEST_TIMEOUT_S)
        return {one["ranks"]: read(one["value"]) for one in body["results"]}


def read(value: str) -> object:
    """Parse a rank's value from its repr; other text is returned as it is."""
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


async def take_snapshot(session: SessionFile, client: DapClient) -> SessionSnapshot:
    """Take a snapshot of a session."""
    listed = await client.request("list", timeout=REQUEST_TIMEOUT_S)
    told = await client.request("breakpoints", timeout=REQUEST_TIMEOUT_S)
    known = listed["ranks"], told["breakpoints"]
    return SessionSnapshot(session.address, session.pid, client, *known)


def id_of(entry: Json) -> RankId:
    """Return an entry's rank, `(group, number)`."""
    return (str(entry["group"]), int(entry["rank"]))


# `unknown`: not on this machine, or inaccessible; then only a probe can tell.
HolderKind: TypeAlias = Literal["nobody", "debugpy", "forwarder", "dap-mux", "stranger", "unknown"]
KIND_BY_OUTCOME: Final[dict[str, HolderKind]] = {
    "session": "dap-mux",
    "stranger": "stranger",
    "refused": "nobody",
}


@dataclass(frozen=True)
class Subject:
    """An endpoint that should lead to a rank, and what is known about it.

    `named`: the origin of the address. `session`: the one that has the rank, "" for none; then
    `rank`, `state` and `reason` are from `list`. `talk`: the probe, only without a session.
    """

    host: str
    port: int
    named: str
    for_editors: bool = False  # named by a launch configuration: a session may be meant
    rank: RankId | None = None
    default_group: str = "job"
    session: str = ""
    session_pid: int = 0
    state: str = ""
    reason: str = ""
    rank_process: Process | None = None  # on this machine
    who: HolderKind = "unknown"
    listener: TcpSocket | None = None
    holder: Process | None = None
    clients: tuple[Process | None, ...] = ()  # other than that session itself
    left: int = 0  # connections whose end the adapter has not noticed
    talk: ProbeResult | None = None

    @property
    def endpoint(self) -> str:
        """`host:port`, as users write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def ranks(self) -> str:
        """Its rank as users write it; "" if unknown."""
        return fold([self.rank], self.default_group) if self.rank else ""

    @property
    def here(self) -> bool:
        """Whether the address is on this machine."""
        return is_loopback(self.host)

    @property
    def outcome(self) -> str:
        """The outcome of the probe; "" without one."""
        return self.talk.outcome if self.talk else ""


@dataclass(frozen=True)
class FilePlace:
    """A line that the user asked about."""

    path: str
    line: int | None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass
class Observations:
    """Everything that was observed."""

    machine: Machine
    subjects: list[Subject] = field(default_factory=list)
    snapshots: list[SessionSnapshot] = field(default_factory=list)
    configurations: list[Configuration] = field(default_factory=list)
    places: list[FilePlace] = field(default_factory=list)
    pythons: list[Python] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)  # pids that the user wants to attach to
    # Debugpys of this folder that are neither debugged nor named, by port.
    elsewhere: dict[int, Process] = field(default_factory=dict)
    looked_at: list[str] = field(default_factory=list)

    def troubled(self) -> Iterator[Subject]:
        """Yield endpoints whose rank is not attached, or cannot be."""
        for each in self.subjects:
            if each.session or not is_well(each):
                yield each


def is_well(subject: Subject) -> bool:
    """Whether a debugpy without a debugger listens there, as far as can be seen.

    For an endpoint of an editor's configuration, a session is fine as well.
    """
    if not looks_well(subject) and subject.who == "debugpy":
        return False
    if subject.for_editors and "dap-mux" in (subject.who, KIND_BY_OUTCOME.get(subject.outcome)):
        return True
    return subject.outcome == "fine" if subject.talk else subject.who == "debugpy"


def looks_well(subject: Subject) -> bool:
    """Whether nothing on this machine indicates a problem."""
    halted = subject.holder is not None and subject.holder.is_halted
    queue = subject.listener.queue if subject.listener else 0
    return not (subject.clients or subject.left or halted or queue)
