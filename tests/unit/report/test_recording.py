"""What the ranks of a report answer, and how they move."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dap_mux.frontends.report.recorded_rank import RecordedRank
from dap_mux.frontends.report.recording import Recording
from dap_mux.frontends.report.report_file import read
from dap_mux.pure.protocol.messages import Event, Message, Request, Response, plain, raw
from dap_mux.pure.remote import ask_stacks, call, called
from dap_mux.pure.remote import read as read_file
from dap_mux.session.session import injected_sources
from tests.support.reports.sample import PATH, TEXT, sample

INJECTED = injected_sources()


class Alone:
    """One rank of the sample, asked without a session."""

    def __init__(self, number: int) -> None:
        self.recording = Recording(read(sample(), "a.dapmux"), "a.dapmux")
        self.rank: RecordedRank = self.recording.ranks[number]
        self.said: list[Event | Request | Response] = []
        self.rank.connected(self.said.append)
        self.ask("configurationDone")

    def ask(self, command: str, **arguments: object) -> Response:
        """Return the answer to a request."""
        before = len(self.said)
        self.rank.heard(Message(1, "request", command, arguments=raw(arguments)))
        answer = self.said[before]
        assert isinstance(answer, Response)
        return answer

    def result(self, expression: str) -> Any:
        """Return what an expression of the session's is answered with."""
        body = self.ask("evaluate", expression=expression).body
        assert isinstance(body, dict)
        return json.loads(body["result"])


def test_a_call_is_recognised() -> None:
    for source in INJECTED.all.values():
        assert called(call(source, "look", "'a', 1", "(x\n)")) == ("look", "'a', 1, (x\n), ")
    assert called("look(1)") is None


def test_files_and_stacks_are_told_as_by_our_code_in_a_rank() -> None:
    alone = Alone(1)
    assert alone.result(read_file(INJECTED["file_probe"], PATH)) == {"text": TEXT}
    assert "problem" in alone.result(read_file(INJECTED["file_probe"], "/etc/passwd"))
    told = alone.result(ask_stacks(INJECTED["stacks"], every_thread=True))
    assert told["functions"] == ["<module>", "step", "wait"]
    assert [name for name, *_ in told["threads"]] == ["MainThread", "loader"]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("stackTrace", {"threadId": "x"}),
        ("scopes", {"frameId": 10**9}),
        ("variables", {}),
        ("evaluate", {}),
        ("evaluate", {"expression": call("", "line_text", "1, 2")}),
        ("evaluate", {"expression": call("", "list_lines", "'x'")}),
        ("evaluate", {"expression": "(" * 10_000}),
        ("evaluate", {"expression": "a" * 10_000}),
        ("source", {"sourceReference": -1}),
        ("setVariable", {"name": "n", "value": "1"}),
        ("goto", {}),
        ("makeCoffee", {}),
    ],
)
def test_what_cannot_be_answered_is_refused(command: str, arguments: dict[str, object]) -> None:
    answer = Alone(1).ask(command, **arguments)
    assert not answer.success
    assert answer.message


def test_a_move_that_is_followed_by_leaving_is_none() -> None:
    """A session lets a rank run on that it leaves at an exception."""
    alone = Alone(0)
    calls: list[Any] = []

    class Stage:
        def comes(self, rank: int) -> None: ...
        def ends(self, rank: int, code: int | None, how: str) -> None: ...
        def shown(self, title: str, why: dict[str, Any], end: str) -> None:
            calls.append(title)

        def later(self, call: Any) -> None:
            calls.append(call)

    alone.recording.begin(Stage())
    assert alone.ask("stepBack").success
    assert alone.ask("disconnect").success
    title, go = calls
    go()
    assert calls == [title, go]
    events = [plain(one.body) for one in alone.said if isinstance(one, Event) and one.body]
    assert [one["reason"] for one in events if "reason" in one] == ["exception"]
