"""Any order of things: ranks, links, clients and deadlines act in the order that a test draws.

Messages wait on the wire until the drawn order delivers them: first in, first out on each
connection, any order between connections. Deadlines pass in any order too, which is more than
any clock can do. Afterwards everything is delivered, and `check` says what must hold then.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from dap_mux.engine import Engine, Settings, inputs, outputs
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.messages import decode
from tests.support.clients.conversation import Conversation
from tests.support.fake_rank.children import addressed, door
from tests.support.fake_rank.injected_calls import INJECTED
from tests.support.fake_rank.program import RAISE
from tests.support.fake_rank.rank import FakeRank
from tests.support.outputs import singly
from tests.support.schema import validate

Json = dict[str, Any]
PATH: Final = "/job/train.py"
KINDS: Final = ("vscode", "neovim", "dape", "somebody")
CALM: Final = 3000  # rounds until everything must have come to rest


@dataclass(frozen=True)
class Manner:
    """How a client counts, spells, and where it has the sources."""

    about: Json = field(default_factory=dict)
    attach: Json = field(default_factory=dict)
    path: str = PATH


def _at(root: str) -> Json:
    return {"pathMappings": [{"localRoot": root, "remoteRoot": "/job"}]}


MANNERS: Final = (
    Manner(),
    Manner({"linesStartAt1": False}),
    Manner({"pathFormat": "uri"}, path=f"file://{PATH}"),
    Manner(attach=_at("c:\\work"), path="C:\\work\\train.py"),
    Manner(attach=_at("/home/u"), path="/home/u/train.py"),
)


@dataclass(eq=False)
class Wire:
    """One rank's connection: what is under way in each direction."""

    link: int
    rank: FakeRank
    up: bool = False
    down: deque[bytes] = field(default_factory=deque)


@dataclass(eq=False)
class Guest:
    """A client, and what it has seen of ids."""

    number: int
    kind: str
    talk: Conversation
    manner: Manner
    seq: int = 0
    threads: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    closed: bool = False
    waiting: set[int] = field(default_factory=set)


class Storm:
    """The world around one engine."""

    def __init__(
        self, ranks: int, settings: Settings | None = None, *, honest: bool = True
    ) -> None:
        self._honest = honest  # else what ranks say is no DAP, and what is passed on neither
        self.engine = Engine(INJECTED, settings)
        self.ranks = {("job", n): FakeRank(n) for n in range(ranks)}
        for id, rank in self.ranks.items():
            rank.patchable = id[1] % 2 == 1
        self.gone: set[tuple[str, int]] = set()
        self.wires: dict[int, Wire] = {}
        self.asked: deque[outputs.Connect] = deque()
        self.guests: list[Guest] = []
        self.deadlines: list[int] = []
        self.finished = 0
        self.told: set[int] = set()  # pids of children that the engine has heard of
        self._acts: dict[type, Callable[[Any], None]] = {
            outputs.ToClient: self.to_client,
            outputs.ToRank: self._to_rank,
            outputs.Connect: self.asked.append,
            outputs.CloseLink: lambda output: self._hang_up(output.link),
            outputs.SetDeadline: lambda output: self.deadlines.append(output.token),
            outputs.CancelDeadline: lambda output: self.deadlines.remove(output.token),
            outputs.CloseClient: lambda output: self._closed(output.client),
            outputs.Finished: self._finish,
        }
        for id in self.ranks:
            self.feed(inputs.RankKnown(id, Endpoint("127.0.0.1", 5678 + id[1], ready=True)))

    # The engine

    def feed(self, happened: inputs.Input) -> None:
        """Give the engine an input and put what it wants on its way."""
        done = self.engine.receive(happened)
        for output in singly(done):
            self._carry_out(output)

    def _carry_out(self, output: outputs.Output) -> None:
        act = self._acts.get(type(output))
        if act:
            act(output)

    def _to_rank(self, output: outputs.ToRank) -> None:
        wire = self.wires.get(output.link)
        if wire:
            validate(json.loads(output.body))
            wire.down.append(output.body)

    def _finish(self, output: outputs.Finished) -> None:
        self.finished += 1

    def to_client(self, output: outputs.ToClient) -> None:
        guest = next(g for g in self.guests if g.number == output.client)
        assert not guest.closed, "a message to a client that is closed"
        message = json.loads(output.body)
        if self._honest:
            guest.talk.server_sent(message)
        body = message.get("body") or {}
        if message.get("event") in ("stopped", "continued", "thread"):
            guest.threads.append(body["threadId"])
        elif message["type"] == "response":
            guest.waiting.remove(message["request_seq"])
            if message["command"] == "threads":
                guest.threads += [row["id"] for row in body["threads"]]
            if message["command"] == "stackTrace" and self._honest and message["success"]:
                guest.frames += [frame["id"] for frame in body["stackFrames"]]

    def _closed(self, number: int) -> None:
        guest = next(g for g in self.guests if g.number == number)
        guest.closed = True
        self.feed(inputs.ClientGone(number))

    def _hang_up(self, link: int) -> None:
        """Our side closes: what was sent arrives, what the rank still says does not."""
        wire = self.wires.pop(link, None)
        if wire:
            for body in wire.down:
                self._receive(wire, body)
            wire.rank.hangs_up()

    def _check_alive(self, wire: Wire) -> None:
        over = wire.rank.ended or not wire.rank.dead
        assert over, f"rank {wire.rank.number}, or a child of it, was wedged"

    # What a test may let happen; `pick` chooses among several

    def connect(self, pick: int) -> None:
        """The oldest wanted connection succeeds, or is refused where the process is gone."""
        if not self.asked:
            return
        wanted = self.asked.popleft()
        if wanted.rank in self.gone or pick % 8 == 0:
            self.feed(inputs.LinkDown(wanted.link, "connection refused", refused=True))
            return
        rank = self.ranks[wanted.rank]
        if any(wire.rank is rank for wire in self.wires.values()):
            rank = door(rank)
        wire = self.wires[wanted.link] = Wire(wanted.link, rank, up=True)
        rank.outbox.clear()
        rank.accepts()
        self.feed(inputs.LinkUp(wire.link))

    def ask_rank(self, pick: int) -> None:
        """A request arrives at a rank."""
        wire = self._wire(pick, lambda wire: bool(wire.down))
        if wire:
            self._receive(wire, wire.down.popleft())

    def _receive(self, wire: Wire, body: bytes) -> None:
        """A rank gets a request; one that runs on from an uncaught exception ends."""
        request = json.loads(body)
        wire.rank = addressed(wire.rank, request)
        held = wire.rank.program.line == RAISE and wire.rank.data.stopped
        wire.rank.receive(request)
        self._check_alive(wire)
        if held and not wire.rank.data.stopped:
            self._end(wire)

    def hear_rank(self, pick: int) -> None:
        """Something that a rank said arrives."""
        wire = self._wire(pick, lambda wire: bool(wire.rank.outbox))
        if wire:
            message = wire.rank.outbox.pop(0)
            if message.get("event") == "debugpyAttach":
                body = message.get("body")
                pid = body.get("subProcessId") if isinstance(body, dict) else None
                if isinstance(pid, int):  # a rank may talk nonsense
                    self.told.add(pid)
            self.feed(inputs.LinkSaid(wire.link, decode(json.dumps(message).encode())))

    def run_rank(self, pick: int) -> None:
        """A rank's program runs to its next breakpoint, or arrives from what blocked it."""
        wire = self._wire(pick, lambda wire: True)
        if wire and wire.rank.program.line == RAISE and not wire.rank.data.stopped:
            self._end(wire)  # it was left at its exception, and ran on
        elif wire and wire.rank.due:
            wire.rank.arrives()
        elif wire:
            wire.rank.runs_on()

    def slow_rank(self, pick: int) -> None:
        """A rank blocks in C from now on, or stops doing so."""
        rank = self.ranks["job", pick % len(self.ranks)]
        rank.slow = not rank.slow

    def raise_in_rank(self, pick: int) -> None:
        """A rank's next run ends in an exception."""
        self.ranks["job", pick % len(self.ranks)].program.raising = True

    def print_in_rank(self, pick: int) -> None:
        """A rank prints."""
        wire = self._wire(pick, lambda wire: True)
        if wire:
            wire.rank.prints(f"line {pick}\n" if pick % 2 else "piece")

    def end_rank(self, pick: int) -> None:
        """A rank's process ends: seldom enough that others live on."""
        wire = self._wire(pick // 4, lambda wire: True)
        if wire and pick % 16 == 0:
            self._end(wire)

    def _end(self, wire: Wire) -> None:
        if wire.rank in self.ranks.values():
            self.gone.add(("job", wire.rank.number))
        if not wire.rank.door_to:
            wire.rank.exits()

    def start_child(self, pick: int) -> None:
        """A rank, or a child of it, starts a process that meets the debugger."""
        wire = self._wire(pick, lambda wire: wire.rank.configured)
        if wire:
            wire.rank.children.start(1000 + len(self._family()))

    def _family(self) -> list[tuple[int, FakeRank]]:
        """Every child there ever was, by its pid."""
        return [child for rank in self.ranks.values() for child in rank.children.all()]

    def cut_link(self, pick: int) -> None:
        """A connection is lost; the program runs on, as debugpy lets it."""
        wire = self._wire(pick // 4, lambda wire: True)
        if wire and pick % 4 == 0:
            del self.wires[wire.link]
            wire.rank.hangs_up()
            self.feed(inputs.LinkDown(wire.link, "connection reset"))

    def deadline(self, pick: int) -> None:
        """Some deadline passes."""
        if self.deadlines:
            token = self.deadlines.pop(pick % len(self.deadlines))
            self.feed(inputs.Deadline(token))

    def guest_comes(self, pick: int) -> None:
        """A client connects and introduces itself; most of them attach and configure."""
        if len([guest for guest in self.guests if not guest.closed]) >= 3:
            return
        number = len(self.guests) + 1
        kind = KINDS[pick % len(KINDS)]
        manner = MANNERS[pick % len(MANNERS)]
        guest = Guest(number, kind, Conversation(f"{kind} {number}"), manner)
        self.guests.append(guest)
        self.feed(inputs.ClientConnected(number))
        self.say(guest, "initialize", adapterID="debugpy", clientID=kind, **manner.about)
        role = {"role": "observer"} if pick % 5 == 4 else {}
        wanted = {"justMyCode": True, "subProcess": pick % 3 > 0}
        self.say(guest, "attach", **wanted, **role, **manner.attach)

    def guest_leaves(self, pick: int) -> None:
        """A client vanishes without a word."""
        here = [guest for guest in self.guests if not guest.closed]
        if here and pick % 9 == 0:
            self._closed(here[pick % len(here)].number)

    def guest_stalls(self, pick: int) -> None:
        """A client does not read, or reads again."""
        here = [guest for guest in self.guests if not guest.closed]
        if here:
            number = here[pick % len(here)].number
            self.feed((inputs.ClientStalled if pick % 2 else inputs.ClientReads)(number))

    def _wire(self, pick: int, fits: Callable[[Wire], bool]) -> Wire | None:
        wires = [wire for wire in self.wires.values() if fits(wire)]
        return wires[pick % len(wires)] if wires else None

    # Clients

    def say(self, guest: Guest, command: str, /, **arguments: object) -> None:
        """Send one request."""
        guest.seq += 1
        guest.waiting.add(guest.seq)
        request: Json = {"seq": guest.seq, "type": "request", "command": command}
        request["arguments"] = arguments
        guest.talk.client_sent(request)
        self.feed(inputs.ClientSaid(guest.number, decode(json.dumps(request).encode())))

    # The end

    def calm_down(self) -> None:
        """Deliver everything, have every client configured, and let every deadline pass."""
        for rank in self.ranks.values():
            rank.slow = False
        self.settle()
        for guest in self.guests:
            if not guest.closed:
                self.say(guest, "configurationDone")
        self.settle()

    def settle(self) -> None:
        """Deliver what is under way until nothing is."""
        for _ in range(CALM):
            if self.deliver():
                continue
            if self.asked:
                self.connect(1)
            elif any(wire.down for wire in self.wires.values()):
                self.ask_rank(0)
            elif any(wire.rank.outbox for wire in self.wires.values()):
                self.hear_rank(0)
            elif any(wire.rank.due for wire in self.wires.values()):
                wire = self._wire(0, lambda wire: bool(wire.rank.due))
                assert wire is not None
                wire.rank.arrives()
            elif not self._pass_deadline():
                return
        raise AssertionError(f"never came to rest: {len(self.deadlines)} deadlines")

    def deliver(self) -> bool:
        """Deliver what is under way at clients; True if there was anything."""
        return False

    def _pass_deadline(self) -> bool:
        """Retries of connections to dead ranks go on for ever; everything else must end."""
        known = (*self.engine.core.ranks.values(), *self.engine.lifecycle.subprocesses)
        live = {rank.timer for rank in known if rank.rank_id in self.gone}
        due = [token for token in self.deadlines if token not in live]
        if due:
            self.deadlines.remove(due[0])
            self.feed(inputs.Deadline(due[0]))
        return bool(due)

    def check(self) -> None:
        """Say what holds whatever happened."""
        for guest in self.guests:
            assert guest.closed or not guest.waiting, f"{guest.kind} waits for {guest.waiting}"
        assert self.finished <= 1
        for rank in self.engine.core.ranks.values():
            self._check_breakpoints(rank)
        for pid, child in self._family():
            alone = ("job", child.number) in self.gone or pid not in self.told or child.ended
            assert alone or not child.waits, f"child {pid} of rank {child.number} hangs"
        if not any(not g.closed for g in self.guests):
            self._check_released()

    def _check_breakpoints(self, rank: Rank) -> None:
        """An attached rank has what its clients want, and nothing else."""
        if rank.phase is not Phase.LIVE or rank.connection.pending or not self._honest:
            return
        assert rank.link is not None
        for path, known in self.wires[rank.link].rank._breakpoints.items():
            stored = self.engine.breakpoints.store.by_place
            sent = self.engine.breakpoints._sendings(path) if path in stored else None
            slots = sent.of(rank).planned.slots if sent else ()
            assert sorted(slot.body["line"] for slot in slots) == sorted(known), (rank.id, path)

    def _check_released(self) -> None:
        """Nobody is here to continue a rank: none may be stopped, or hold a connection."""
        for wire in self.wires.values():
            raise AssertionError(f"rank {wire.rank.number} is still connected")
        for rank in (*self.ranks.values(), *(child for _, child in self._family())):
            assert rank.data.stopped is None, f"rank {rank.number} is left stopped"
