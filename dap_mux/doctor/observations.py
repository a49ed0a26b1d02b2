"""What there is to look at: the ranks' endpoints, the sessions, the folder's configurations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from dap_mux.addresses import is_loopback
from dap_mux.doctor.launch_json import Configuration
from dap_mux.doctor.machine import Machine, Process
from dap_mux.doctor.probe import ProbeResult
from dap_mux.doctor.pythons import Python
from dap_mux.doctor.snapshot import SessionSnapshot
from dap_mux.procfs import TcpSocket
from dap_mux.rank_sets import RankId, fold

# `unknown`: not on this machine, or not told; then only `talk` can say.
HolderKind: TypeAlias = Literal["nobody", "debugpy", "forwarder", "dap-mux", "stranger", "unknown"]
KIND_BY_OUTCOME: Final[dict[str, HolderKind]] = {
    "session": "dap-mux",
    "stranger": "stranger",
    "refused": "nobody",
}


@dataclass(frozen=True)
class Subject:
    """An endpoint that should lead to a rank, and what is known of it without a debugger.

    `named`: where the address is from. `session`: whose rank it is, "" where no session has it;
    then `rank`, `state` and `reason` are what `list` says. `talk`: only without a session.
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
    rank_process: Process | None = None  # of this machine
    who: HolderKind = "unknown"
    listener: TcpSocket | None = None
    holder: Process | None = None
    clients: tuple[Process | None, ...] = ()  # but for that session itself
    left: int = 0  # connections that ended without the adapter's notice
    talk: ProbeResult | None = None

    @property
    def endpoint(self) -> str:
        """`host:port`, as users write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def ranks(self) -> str:
        """Its rank as users write it; "" where that is not known."""
        return fold([self.rank], self.default_group) if self.rank else ""

    @property
    def here(self) -> bool:
        """Whether the address is on this machine."""
        return is_loopback(self.host)

    @property
    def outcome(self) -> str:
        """How talking to it went; "" where nobody did."""
        return self.talk.outcome if self.talk else ""


@dataclass(frozen=True)
class FilePlace:
    """A line that the user asks about."""

    path: str
    line: int | None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass
class Observations:
    """All of it."""

    machine: Machine
    subjects: list[Subject] = field(default_factory=list)
    snapshots: list[SessionSnapshot] = field(default_factory=list)
    configurations: list[Configuration] = field(default_factory=list)
    places: list[FilePlace] = field(default_factory=list)
    pythons: list[Python] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)  # to be debugged by their numbers
    # Debugpys of this folder that nobody debugs and nobody named, by port.
    elsewhere: dict[int, Process] = field(default_factory=dict)
    looked_at: list[str] = field(default_factory=list)

    def troubled(self) -> Iterator[Subject]:
        """Endpoints whose rank is not attached, or cannot be."""
        for each in self.subjects:
            if each.session or not is_well(each):
                yield each


def is_well(subject: Subject) -> bool:
    """Whether a debugpy that nobody debugs listens there, as far as anybody can tell.

    Or a session, where an editor's configuration names it.
    """
    if not looks_well(subject) and subject.who == "debugpy":
        return False
    if subject.for_editors and "dap-mux" in (subject.who, KIND_BY_OUTCOME.get(subject.outcome)):
        return True
    return subject.outcome == "fine" if subject.talk else subject.who == "debugpy"


def looks_well(subject: Subject) -> bool:
    """Whether nothing speaks against it in what this machine tells of it."""
    halted = subject.holder is not None and subject.holder.is_halted
    queue = subject.listener.queue if subject.listener else 0
    return not (subject.clients or subject.left or halted or queue)
