"""What nobody has foreseen is one request's error, and a number in the log; nobody else's."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

import pytest

from dap_mux.engine import Settings, inputs, outputs
from dap_mux.engine.admission import Token
from dap_mux.engine.state.rank import NO_REASON
from dap_mux.pure.protocol.messages import decode
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, frame_of, introduced, stopped
from tests.support.scripted.playbook import PATH, Playbook

DEFECT: Final = "internal error 1 (ZeroDivisionError: by a test)"


class Brittle(Settings, frozen=True):
    """Settings that cannot be read while `broken` is not empty: a stand-in for any defect."""

    broken: tuple[list[str], ...] = ([],)

    def __getattribute__(self, name: str) -> Any:
        if name == "request_timeout" and object.__getattribute__(self, "broken")[0]:
            raise ZeroDivisionError("by a test")
        return object.__getattribute__(self, name)

    def breaks(self) -> None:
        """From now on nothing can be asked of a rank without a deadline of its own."""
        self.broken[0].append("broken")

    def works(self) -> None:
        """As before."""
        self.broken[0].clear()


class BrittleToken(Token):
    """A token that cannot be compared."""

    __slots__ = ()

    def matches(self, offered: str) -> bool:
        raise ZeroDivisionError("by a test")


@pytest.fixture
def settings() -> Brittle:
    return Brittle(broken=([],))


@pytest.fixture
def book(settings: Brittle) -> Playbook:
    return Playbook(3, settings)


def says(book: Playbook, message: Mapping[str, object]) -> list[outputs.Output]:
    """Rank 0 says something that need not be DAP; return what is done about it."""
    link = book.engine.core.ranks["job", 0].link
    assert link is not None
    text = json.dumps({"seq": 9999, **message})
    return book.engine.receive(inputs.LinkSaid(link, decode(text.encode())))


def logged(done: list[outputs.Output]) -> list[str]:
    """The levels of what is logged."""
    return [logging.getLevelName(one.level) for one in done if isinstance(one, outputs.Log)]


def faults(book: Playbook) -> list[str]:
    """The first lines of what the log has of defects."""
    lines = book.transcript.text().splitlines()
    return [line for line in lines if "internal error" in line and line.startswith("session")]


def test_a_request_is_answered_and_nobody_else_is_harmed(book: Playbook, settings: Brittle) -> None:
    client = stopped(book)
    other = attached(book, "other")
    thread = book.thread(1)
    settings.breaks()
    refusal = client.ask("stackTrace", threadId=thread).refusal
    assert refusal.startswith(DEFECT)
    assert len(faults(book)) == 1
    settings.works()
    assert client.ask("stackTrace", threadId=thread).body["stackFrames"]
    assert other.ask("list").body["counts"]["stopped"] == 3
    other.ask("continue", threadId=thread)
    assert other.ask("list").body["counts"]["running"] >= 1
    book.finish()


def test_the_traceback_is_in_the_log(book: Playbook, settings: Brittle) -> None:
    client = stopped(book)
    settings.breaks()
    message = {"seq": 99, "type": "request", "command": "modules", "arguments": {}}
    said = inputs.ClientSaid(1, decode(bytes(str(message).replace("'", '"'), "ascii")))
    logs = [one.text for one in book.engine.receive(said) if isinstance(one, outputs.Log)]
    assert [text.splitlines()[0] for text in logs] == [DEFECT]
    assert "Traceback" in logs[0]
    assert "by a test" in logs[0].splitlines()[-1]
    assert not client.closed


def test_what_a_rank_says_harms_no_other(book: Playbook, settings: Brittle) -> None:
    """A rank's stop asks the rank for its stack: only that fails."""
    client = attached(book)
    settings.breaks()
    with book.happens():
        book.rank(0).event("thread", reason="started", threadId=7)
        book.rank(0).hits(LINE)
    settings.works()
    book.hits(LINE, 1)
    book.wait(2)
    assert client.ask("list").body["counts"]["stopped"] >= 1
    assert not client.closed


def test_an_attach_that_fails_may_be_tried_again(book: Playbook, settings: Brittle) -> None:
    """It leaves no client that is half in the session, and no rank attached for nobody."""
    client = introduced(book)
    client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": LINE}])
    observed = attached(book, "observer", role="observer")
    settings.breaks()
    stranger = introduced(book, "stranger", BrittleToken("secret"))
    assert stranger.ask("attach", token="x").refusal.startswith(DEFECT)
    settings.works()
    client.ask("attach", justMyCode=True)
    client.ask("configurationDone")
    assert observed.ask("list").body["counts"]["running"] == 3
    assert book.rank(0).last_breakpoints == [{"line": LINE}]


def test_a_lost_rank_owes_everybody_an_answer(book: Playbook, settings: Brittle) -> None:
    """One that cannot take it does not keep the others from theirs."""
    client = stopped(book)
    frame = frame_of(client, book.thread(0))
    book.rank(0).silent.add("evaluate")
    waiting = [client.ask("evaluate", expression="loss", frameId=frame) for _ in range(3)]
    settings.breaks()
    book.lose(0)
    settings.works()
    book.rank(0).silent.clear()
    assert all(answer.refusal for answer in waiting)
    book.wait(2)
    assert client.ask("list").body["counts"]["lost"] == 0


@pytest.mark.parametrize(
    "configuration", [None, {}, 5, [], {"subProcessId": "1"}, {"subProcessId": True}]
)
def test_a_child_without_a_process_is_refused(book: Playbook, configuration: object) -> None:
    attached(book)
    arguments = {"request": "attach", "configuration": configuration}
    request = {"type": "request", "command": "startDebugging", "arguments": arguments}
    (answer,) = (one for one in says(book, request) if isinstance(one, outputs.ToRank))
    assert not decode(answer.body).success
    event = {"type": "event", "event": "debugpyAttach", "body": as_body(configuration)}
    assert logged(says(book, event)) == ["WARNING"]
    assert book.engine.core.ranks["job", 0].state == "running"


def as_body(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {"subProcessId": [value]}


@pytest.mark.parametrize("source", [5, "x", [], None, {"path": 5}, {"path": None}])
def test_a_source_that_is_none(book: Playbook, source: object) -> None:
    """In events and in stacks: the rank stops all the same, and its stack can be asked for."""
    client = attached(book)
    frames = [{"id": 1, "name": "f", "line": 1, "column": 1, "source": source}]
    for event, body in (
        ("loadedSource", {"reason": "new", "source": source}),
        ("module", {"reason": "new", "module": source}),
        ("output", {"output": "x\n", "category": "stdout", "source": source}),
        ("stopped", {"reason": "breakpoint", "threadId": 1, "stackFrames": frames}),
    ):
        assert "ERROR" not in logged(says(book, {"type": "event", "event": event, "body": body}))
    book.wait(2)
    assert client.ask("list").body["counts"]["running"] >= 2


@pytest.mark.parametrize("why", ["", "not today"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_rank_that_refuses_to_be_initialized(count: int, why: str, rehearse: Play) -> None:
    """Again and again, also without a word: said in `list`, and tried again."""
    book = rehearse(count)
    book.rank(0).refuses["initialize"] = why
    client = attached(book)
    book.wait(30)
    told = client.ask("list").body["ranks"][0]
    assert (told["state"], told["reason"]) == ("waiting", why or NO_REASON)
    book.rank(0).refuses.clear()
    book.wait(15)
    assert client.ask("list").body["counts"]["running"] == count
    assert "internal error" not in book.transcript.text()
