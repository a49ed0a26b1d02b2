"""Nothing that a rank or a client says again and again makes the session grow for ever."""

from __future__ import annotations

import gc
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

import pytest

from dap_mux.engine import Settings, inputs
from dap_mux.engine.breakpoints import store
from dap_mux.engine.messages import requests
from dap_mux.engine.session import groups, rank_events
from dap_mux.engine.source_files import diagnosis
from dap_mux.engine.state import handles as handle_book
from dap_mux.engine.state import threads
from dap_mux.engine.state.handles import Handles
from dap_mux.pure.protocol.exchange import Kind
from dap_mux.pure.protocol.messages import decode
from tests.conftest import rounds
from tests.engine.conftest import Play
from tests.engine.scenes import attached, states, stopped
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

Json = dict[str, Any]
LruCache: Final = type(lru_cache(len))
LIMIT: Final = 50  # in place of the limits there are: all of them are far beyond what a test says
TIMES: Final = 400
HISTORY: Final = 60  # stops


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle_book, "MAX_PER_RANK", LIMIT)
    monkeypatch.setattr(handle_book, "_MAX_EXPIRED", LIMIT)
    monkeypatch.setattr(store, "MAX_REPLACED_IDS", LIMIT)
    monkeypatch.setattr(diagnosis, "MAX_FILES", LIMIT)
    monkeypatch.setattr(rank_events, "MAX_LOADED", LIMIT)
    monkeypatch.setattr(rank_events, "MAX_QUESTIONS", LIMIT)
    monkeypatch.setattr(rank_events, "MAX_RUNNING", LIMIT)
    monkeypatch.setattr(threads, "MAX_THREADS", LIMIT)
    monkeypatch.setattr(requests, "MAX_OFFERS", LIMIT)
    monkeypatch.setattr(groups, "MAX_NAMES", LIMIT)
    monkeypatch.setattr(requests, "MAX_OPEN", LIMIT)


def says(book: Playbook, event: str, bodies: Iterable[Json]) -> None:
    """Rank 0 says an event again and again; what is done about it is not carried out."""
    link = book.engine.core.ranks["job", 0].link
    assert link is not None
    for number, body in enumerate(bodies):
        message = {"seq": number + 9999, "type": "event", "event": event, "body": body}
        book.engine.receive(inputs.LinkSaid(link, decode(json.dumps(message).encode())))


def size_of(root: object) -> int:
    """How many objects an engine holds, whatever they are."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, (ModuleType, type, LruCache)):
            continue
        seen.add(id(one))
        if isinstance(one, FunctionType):
            todo += one.__closure__ or ()  # its module is not the engine's
        elif isinstance(one, MethodType):
            todo.append(one.__self__)
        else:
            todo += gc.get_referents(one)
    return len(seen)


EVENTS: Final[dict[str, Callable[[int], Json]]] = {
    "module": lambda n: {"reason": "new", "module": {"id": n, "name": f"m{n}", "path": f"/{n}.py"}},
    "loadedSource": lambda n: {"reason": "new", "source": {"path": f"/{n}.py"}},
    "output": lambda n: {"output": "x\n", "category": "stdout", "variablesReference": n + 1},
    "thread": lambda n: {"reason": "started", "threadId": n},
    "breakpoint": lambda n: {"reason": "changed", "breakpoint": {"id": 0, f"x{n}": n}},
    "capabilities": lambda n: {"capabilities": {f"supports{n}": True}},
    "memory": lambda n: {"memoryReference": f"0x{n}", "offset": 0, "count": 1},
    "progressStart": lambda n: {"progressId": f"p{n}", "title": "x"},
    "debugpyAttach": lambda n: {"subProcessId": "no"},
    "unheardOf": lambda n: {"x": n},
}


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("event", EVENTS)
def test_events(event: str, ranks: int) -> None:
    book = Playbook(ranks, Settings(threads="all"))
    attached(book)
    bodies = map(EVENTS[event], itertools.count())
    says(book, event, itertools.islice(bodies, TIMES))
    before = held(book)
    says(book, event, itertools.islice(bodies, TIMES))
    assert held(book) <= before + TIMES // 10


def held(book: Playbook) -> int:
    """What the engine holds of it: all of its own, without the tables that it shares."""
    core = book.engine.core
    book.engine.output.flush(everything=True)
    core.out.clear()
    return size_of(book.engine.__dict__)


def asking(client: Client) -> Iterator[Callable[[int], object]]:
    yield lambda n: client.ask("setBreakpoints", source={"path": f"/{n}.py"}, breakpoints=[])
    yield lambda n: client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 7}])
    yield lambda n: client.ask("groups", define={"name": f"g{n}", "ranks": "0"})
    yield lambda n: client.ask("evaluate", expression=f"{n}", context="repl")
    yield lambda n: client.ask("cast", ranks="0", command=f"display x{n}")
    yield lambda n: client.ask("setExceptionBreakpoints", filters=[f"f{n}"])


@pytest.mark.parametrize("kind", range(6))
def test_requests(kind: int, rehearse: Play) -> None:
    book, client = rehearse.stopped(2)
    ask = list(asking(client))[kind]
    with book.quietly("again and again"):
        for number in range(TIMES):
            ask(number)
        book.wait(10)
        before = held(book)
        for number in range(TIMES, 2 * TIMES):
            ask(number)
        book.wait(10)
    assert held(book) <= before + TIMES // 4


def test_more_requests_than_can_wait(rehearse: Play) -> None:
    book, client = rehearse.stopped(1)
    book.rank(0).silent.add("evaluate")
    answers = [client.ask("evaluate", expression="1", context="watch") for _ in range(LIMIT + 9)]
    waiting = [answer for answer in answers if answer.response is None]
    assert len(waiting) == LIMIT
    assert "wait before you send more" in answers[-1].refusal
    book.answers(0)
    assert all(answer.response for answer in answers)


def test_a_rank_that_is_lost_again_and_again(rehearse: Play) -> None:
    """Each time its process is watched for its end, until the rank is back."""
    book = rehearse(1)
    book.runs["job", 0] = True
    client = attached(book)
    before = 0
    for time in range(TIMES):
        book.lose(0)
        assert len(book.watched) == 1
        book.wait(1)
        assert not book.watched
        if time == TIMES // 2:
            before = held(book)
    assert held(book) <= before + TIMES // 10
    assert states(client) == ["running"]


def test_one_stop_after_the_other(rehearse: Play) -> None:
    """An editor reads each of them, compares a value, and steps on: 200 stops, 50 outside CI."""
    book, client = rehearse.stopped(4)
    before = 0
    for number in range(HISTORY + rounds(200)):
        if number == HISTORY:  # as many stops of an expression are kept
            before = held(book)
        step_on(book, client)
    assert held(book) <= before + LIMIT


def step_on(book: Playbook, client: Client) -> None:
    """Read the stop of rank 0 as an editor does, and go to the next one."""
    frame = client.ask("stackTrace", threadId=book.thread(0)).body["stackFrames"][0]["id"]
    scope = client.ask("scopes", frameId=frame).body["scopes"][0]["variablesReference"]
    client.ask("variables", variablesReference=scope)
    client.ask("evaluate", expression="step", frameId=frame, context="watch")
    client.ask("compare", expression="step", history=True)
    client.ask("next", threadId=book.thread(0))
    book.wait(1)
    assert states(client) == ["stopped"] * 4


def test_clients_that_come_and_go(rehearse: Play) -> None:
    """What they have asked about a stop may be answered once more; they are forgotten."""
    book = rehearse(2)
    visit(book)
    before = held(book)
    for _ in range(LIMIT):
        visit(book)
    assert held(book) <= before + 2 * LIMIT  # an answer and its request, of each


def visit(book: Playbook) -> None:
    """A client looks at a stop, steps on from it, and leaves."""
    client = stopped(book)
    frame = client.ask("stackTrace", threadId=book.thread(0)).body["stackFrames"][0]["id"]
    client.ask("evaluate", expression="step", frameId=frame, context="watch")
    client.ask("continue", threadId=book.thread(0))
    client.ask("disconnect")
    book.wait(10)


def test_ids_that_nobody_may_ask_for_any_more() -> None:
    handles = Handles()
    for rank in (("job", 0), ("job", 1)):
        for frame in range(LIMIT):
            handles.mint(rank, Kind.FRAME, frame)
    before = size_of(Handles())
    for rank in (("job", 0), ("job", 1)):
        handles.expire_stop(rank)
    for rank in (("job", 0), ("job", 1)):
        handles.expire_rank(rank)
    handles._ends.clear()
    assert size_of(handles) <= before + 1
