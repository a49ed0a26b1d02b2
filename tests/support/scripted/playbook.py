"""A scripted session without sockets: a real engine, fake ranks, clients, and a clock of its own.

A test makes things happen (`client.ask`, `rank.hits`, `book.wait`) and the playbook writes down
who said what, `client >` and `rank 3 >` for what they say, `client <` and `rank 3 <` for what
they are told. The text is compared with a golden file: a test reads as documentation, and its
transcript as the proof. Every message in both directions is held against the DAP schema and
the rules of a conversation.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dap_mux.engine import Engine, Settings, inputs, outputs
from dap_mux.engine.admission import Token
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.insight.why.evidence import Process
from dap_mux.pure.protocol.messages import decode, encode_frame
from tests.support.clients.conversation import Conversation
from tests.support.editors import Editor
from tests.support.fake_rank.children import addressed, door
from tests.support.fake_rank.injected_calls import INJECTED
from tests.support.fake_rank.rank import FakeRank
from tests.support.outputs import singly
from tests.support.scripted.scripted_clients import Client, EditorClient
from tests.support.scripted.transcript import Transcript, Who

Json = dict[str, Any]
PATH: Final = "/job/train.py"
_ENDLESS: Final = 20_000  # deliveries without a pause: somebody answers himself for ever


@dataclass
class Wire:
    """One connection to a rank."""

    rank: FakeRank
    conversation: Conversation
    open: bool = True


class Playbook:
    """The engine, everybody around it, and the clock."""

    def __init__(self, count: int = 0, settings: Settings | None = None) -> None:
        self.engine = Engine(INJECTED, settings)
        self.transcript = Transcript(self.engine)
        self.now = 0.0
        self.ranks: dict[tuple[str, int], FakeRank] = {}
        self.absent: set[tuple[str, int]] = set()  # nothing listens there
        self.over: set[tuple[str, int]] = set()  # of those, whose process has ended
        self.runs: dict[tuple[str, int], bool] = {}  # whether their processes do, of this machine
        self.looks: dict[tuple[str, int], int] = {}  # the last `WatchProcess` for each
        self.watched: set[int] = set()  # which are not forgotten
        self.processes: dict[str, Process] = {}  # what the system shows of them
        self.local: dict[str, str] | None = None  # files beside the clients, None if elsewhere
        self.disk_hangs = False
        self.finished = False
        self.ended_job = False
        self.pauses: list[bool] = []  # what the session has reported of stopped ranks
        self._clients: dict[int, Client] = {}
        self._everybody: list[Client] = []
        self._wires: dict[int, Wire] = {}
        self._mail: deque[Callable[[], None]] = deque()
        self._due: list[tuple[float, int]] = []
        self._cancelled: set[int] = set()
        for number in range(count):
            self.know(number)

    # Who is there

    def know(self, number: int, group: str = "job", **endpoint: Any) -> FakeRank:
        """Tell the engine of a rank, or of its new endpoint."""
        id = (group, number)
        rank = self.ranks.setdefault(id, FakeRank(number))
        place: Json = {"host": "127.0.0.1", "port": 5678 + number, "ready": True, **endpoint}
        self.feed(inputs.RankKnown(id, Endpoint(**place)))
        self.pump()
        return rank

    def rank(self, number: int, group: str = "job") -> FakeRank:
        """The fake behind a rank."""
        return self.ranks[group, number]

    def thread(self, number: int, group: str = "job") -> int:
        """The thread id that clients know a rank by."""
        return self.engine.view.id_of((group, number))

    def client(self, name: str = "client", token: Token | None = None) -> Client:
        """Connect a client that the test scripts; a stranger where it has to show a `token`."""
        return self._connect(lambda number: Client(self, number, name), token)

    def editor(self, editor: Editor, name: str = "client") -> EditorClient:
        """Connect an editor."""
        made = self._connect(lambda number: EditorClient(self, number, name, editor))
        assert isinstance(made, EditorClient)
        return made

    def _connect(self, make: Callable[[int], Client], token: Token | None = None) -> Client:
        number = len(self._everybody) + 1
        client = self._clients[number] = make(number)
        self._everybody.append(client)
        self.feed(inputs.ClientConnected(number, token is None, token))
        return client

    # What happens

    def feed(self, happened: inputs.Input) -> None:
        """Tell the engine, and put its outputs on their way."""
        done = self.engine.receive(happened)
        for output in singly(done):
            self.later(partial(self._carry_out, output))

    def later(self, deliver: Callable[[], None]) -> None:
        """Put something on its way, behind all that is there already."""
        self._mail.append(deliver)

    def pump(self) -> None:
        """Deliver until nothing is on its way."""
        self._collect()
        for _ in range(_ENDLESS):
            if not self._mail:
                return
            self._mail.popleft()()
            self._collect()
        raise AssertionError("this conversation never comes to rest")

    def _collect(self) -> None:
        """Put what the ranks have said on its way."""
        for link, wire in self._wires.items():
            said, wire.rank.outbox = (wire.rank.outbox, []) if wire.open else ([], wire.rank.outbox)
            for message in said:
                self.later(partial(self._rank_said, link, message))

    @contextmanager
    def happens(self) -> Iterator[None]:
        """What ranks do inside the block happens at the same moment."""
        yield
        self.pump()

    def hits(self, line: int, *numbers: int) -> None:
        """These ranks (every rank without any) hit a breakpoint at the same moment."""
        self._at_once(lambda rank: rank.hits(line), numbers)

    def exits(self, *numbers: int) -> None:
        """The programs of these ranks end."""
        self._at_once(FakeRank.exits, numbers)

    def raises(self, *numbers: int) -> None:
        """An exception is raised in these ranks."""
        self._at_once(FakeRank.raises, numbers)

    def arrives(self, *numbers: int) -> None:
        """Slow ranks stop, as they were told to."""
        self._at_once(FakeRank.arrives, numbers)

    def answers(self, *numbers: int) -> None:
        """Silent ranks answer."""
        self._at_once(FakeRank.answers, numbers)

    def _at_once(self, act: Callable[[FakeRank], None], numbers: Iterable[int]) -> None:
        ranks = [self.rank(number) for number in numbers] or self.ranks.values()
        with self.happens():
            for rank in ranks:
                act(rank)

    def wait(self, seconds: float) -> None:
        """Let time pass, and each deadline on the way."""
        until = self.now + seconds
        self.pump()
        while self._due and self._due[0][0] <= until + 1e-9:
            self.now, token = heapq.heappop(self._due)
            if token not in self._cancelled:
                self.transcript.at(self.now)
                self.feed(inputs.Deadline(token))
                self.pump()
        self.now = until
        self.transcript.at(self.now)

    def wait_quietly(self, seconds: float, text: str) -> None:
        """Let time pass, of which the transcript has one line."""
        with self.quietly(text):
            self.wait(seconds)

    def note(self, text: str) -> None:
        """Say in the transcript what happens next."""
        self.transcript.note(text)

    @contextmanager
    def quietly(self, text: str) -> Iterator[None]:
        """Leave out of the transcript what happens in the block, but for one line about it."""
        with self.transcript.quietly(text):
            yield

    def lose(self, number: int, reason: str = "connection reset", group: str = "job") -> None:
        """A rank's connection ends."""
        for link, wire in list(self._wires.items()):
            if wire.open and wire.rank is self.ranks[group, number]:
                self.lose_link(link, reason)

    def lose_link(self, link: int, reason: str = "connection reset") -> None:
        """A connection ends; who is at its end runs on."""
        wire = self._wires[link]
        wire.open = False
        wire.rank.hangs_up()
        self.transcript.line(self._id_of(wire.rank), "=", f"lost ({reason})")
        self.feed(inputs.LinkDown(link, reason))
        self.pump()

    def exited(self, number: int, code: int | None, group: str = "job") -> None:
        """Whoever started the rank sees its process end."""
        self.transcript.line(("rank", (group, number)), "=", f"exited with {code}")
        self.feed(inputs.RankExited((group, number), code))
        self.pump()

    def failed(self, number: int, failure: str, held: float | None = None) -> None:
        """A rank's process says what it is about to die of."""
        self.transcript.line(("rank", ("job", number)), "=", f"failed ({failure}), held {held}")
        self.feed(inputs.RankFailed(("job", number), failure, held))
        self.pump()

    def process_ends(self, number: int, group: str = "job") -> None:
        """A process of this machine ends, which the shell was asked to watch."""
        id = group, number
        self.transcript.line(("rank", id), "=", "its process has ended")
        self.runs[id] = False
        self.feed(inputs.ProcessSeen(self.looks[id], alive=False))
        self.pump()

    def finish(self) -> str:
        """Check what only the end shows; return the transcript."""
        self.pump()
        for client in self._everybody:
            client.finish()
        return self.transcript.text()

    # Carrying out the engine's outputs

    def _carry_out(self, output: outputs.Output) -> None:
        handler = _HANDLERS.get(type(output))
        if handler:
            handler(self, output)

    def _to_client(self, output: outputs.ToClient) -> None:
        if output.client in self._clients and not self._clients[output.client].closed:
            self._clients[output.client].hears(json.loads(output.body))

    def _admitted(self, output: outputs.Admitted) -> None:
        self.transcript.line(self._clients[output.client].name, "=", "admitted")

    def _close_client(self, output: outputs.CloseClient) -> None:
        client = self._clients.pop(output.client, None)
        if client and not client.closed:
            client.hung_up()

    def _connect_rank(self, output: outputs.Connect) -> None:
        if output.rank in self.absent:
            self.transcript.line(("rank", output.rank), "=", "refused")
            over = output.rank in self.over and bool(output.process)
            self.feed(inputs.LinkDown(output.link, "connection refused", True, over))
            return
        rank = self.ranks[output.rank]
        if any(wire.open and wire.rank is rank for wire in self._wires.values()):
            rank = door(rank)
        self._wires[output.link] = Wire(rank, Conversation("engine", strict=False))
        self.transcript.line(self._id_of(rank), "=", "connected")
        self.feed(inputs.LinkUp(output.link))
        rank.accepts()

    def _to_rank(self, output: outputs.ToRank) -> None:
        wire = self._wires[output.link]
        assert wire.open, f"rank {wire.rank.number}: told {output.body!r} when it is closed"
        message = json.loads(output.body)
        wire.conversation.client_sent(message)
        if message["type"] == "request":
            wire.rank = addressed(wire.rank, message)
        self.transcript.of_rank(self._id_of(wire.rank), "<", message)
        if message["type"] == "request":
            wire.rank.receive(message)
        elif message["type"] == "event":
            wire.rank.hears(message)

    def _rank_said(self, link: int, message: Json) -> None:
        wire = self._wires[link]
        if wire.open:
            wire.conversation.server_sent(message)
            self.transcript.of_rank(self._id_of(wire.rank), ">", message)
            body = json.dumps(message).encode()
            frame, said = encode_frame(body), decode(body)
            collect = self.engine.collect
            if not (collect(link, frame) or collect(link, frame, said)):
                self.feed(inputs.LinkSaid(link, said))

    def _close_link(self, output: outputs.CloseLink) -> None:
        wire = self._wires[output.link]
        if wire.open:
            wire.open = False
            wire.rank.outbox = []
            wire.rank.hangs_up()
            self.transcript.line(self._id_of(wire.rank), "=", "closed")
            self.feed(inputs.LinkDown(output.link, "closed"))

    def _watch_process(self, output: outputs.WatchProcess) -> None:
        id = self.engine.core.looks[output.token].rank_id
        self.looks[id] = output.token
        self.watched.add(output.token)
        self.later(lambda: self.feed(inputs.ProcessSeen(output.token, self.runs.get(id))))

    def _unwatch_process(self, output: outputs.UnwatchProcess) -> None:
        self.watched.remove(output.token)

    def _id_of(self, rank: FakeRank) -> Who:
        """Who a fake is in the transcript; children go by their pid."""
        for id, known in self.ranks.items():
            if known is rank:
                return "rank", id
            for pid, child in known.children.all():
                if child is rank:
                    return f"child {pid}"
        return f"rank {rank.number}'s adapter"

    def _set_deadline(self, output: outputs.SetDeadline) -> None:
        heapq.heappush(self._due, (self.now + output.seconds, output.token))

    def _cancel_deadline(self, output: outputs.CancelDeadline) -> None:
        self._cancelled.add(output.token)

    def _read_local(self, output: outputs.ReadLocal) -> None:
        self.later(lambda: self.feed(inputs.LocalText(output.token, "")))

    def _hash_local(self, output: outputs.HashLocal) -> None:
        if self.disk_hangs:
            return
        local = self.local
        digests = {} if local is None else {path: local.get(path, "") for path in output.paths}
        self.later(lambda: self.feed(inputs.LocalHash(output.token, digests)))

    def _read_processes(self, output: outputs.ReadProcesses) -> None:
        self.later(lambda: self.feed(inputs.ProcessesRead(output.token, self.processes)))

    def _end_job(self, output: outputs.EndJob) -> None:
        self.ended_job = True
        self.transcript.line("session", "=", "the job shall end")

    def _restart_job(self, output: outputs.RestartJob) -> None:
        to = f", up to {output.to}" if output.to else ""
        self.transcript.line("session", "=", f"the job shall start again{to}")

    def _paused(self, output: outputs.Paused) -> None:
        self.pauses.append(output.stopped)

    def _finish(self, output: outputs.Finished) -> None:
        self.finished = True
        self.transcript.line("session", "=", "finished")

    def _tell(self, output: outputs.Tell) -> None:
        self.transcript.line("session", "=", f"tells: {output.text}")

    def _log(self, output: outputs.Log) -> None:
        if output.level >= 30:
            who = ("rank", output.rank) if output.rank else "session"
            self.transcript.line(who, "=", f"warning: {output.text}")


_HANDLERS: Final[dict[type, Callable[[Playbook, Any], None]]] = {
    outputs.ToClient: Playbook._to_client,
    outputs.Admitted: Playbook._admitted,
    outputs.CloseClient: Playbook._close_client,
    outputs.Connect: Playbook._connect_rank,
    outputs.ToRank: Playbook._to_rank,
    outputs.CloseLink: Playbook._close_link,
    outputs.WatchProcess: Playbook._watch_process,
    outputs.UnwatchProcess: Playbook._unwatch_process,
    outputs.Tell: Playbook._tell,
    outputs.SetDeadline: Playbook._set_deadline,
    outputs.CancelDeadline: Playbook._cancel_deadline,
    outputs.HashLocal: Playbook._hash_local,
    outputs.ReadLocal: Playbook._read_local,
    outputs.ReadProcesses: Playbook._read_processes,
    outputs.EndJob: Playbook._end_job,
    outputs.RestartJob: Playbook._restart_job,
    outputs.Paused: Playbook._paused,
    outputs.Finished: Playbook._finish,
    outputs.Log: Playbook._log,
}
