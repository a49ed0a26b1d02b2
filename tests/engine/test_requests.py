"""One transcript for each request of the routing table that `handshake` does not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dap_mux.engine.routes import ROUTES
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, frame_of, lines, locals_of
from tests.support.scripted.playbook import PATH

REFUSED = [name for name, route in ROUTES.items() if route.handler is None]


class TestDataOfOneRank:
    def test_stack_to_variables(self, play: Play) -> None:
        """`stackTrace`, `scopes`, `variables`: equal ids of two ranks never meet."""
        book, client = play.stopped(2)
        for number in (0, 1):
            reference = locals_of(client, book.thread(number))
            values = client.ask("variables", variablesReference=reference).body["variables"]
            assert {"name": "loss", "value": str(number * 10)}.items() <= values[1].items()

    def test_set_variable(self, play: Play) -> None:
        """`setVariable` and `setExpression` change one rank."""
        book, client = play.stopped(2)
        reference = locals_of(client, book.thread(1))
        client.ask("setVariable", variablesReference=reference, name="loss", value="7")
        frame = frame_of(client, book.thread(1))
        client.ask("setExpression", frameId=frame, expression="step", value="8")
        assert book.rank(1).data.values == {"loss": "7", "step": "8"}
        assert book.rank(0).data.values == {"loss": "0", "step": "0"}

    def test_evaluate(self, play: Play) -> None:
        """`evaluate` goes to the frame's owner, without a frame to the focused rank."""
        book, client = play.stopped(2)
        frame = frame_of(client, book.thread(1))
        watch: dict[str, Any] = {"expression": "loss", "context": "watch"}
        assert client.ask("evaluate", frameId=frame, **watch).body["result"] == "10"
        assert client.ask("evaluate", **watch).body["result"] == "10"
        assert "NameError" in client.ask("evaluate", frameId=frame, expression="nope").refusal

    def test_completions(self, play: Play) -> None:
        """`completions` of the frame's owner."""
        book, client = play.stopped(2)
        frame = frame_of(client, book.thread(1))
        body = client.ask("completions", frameId=frame, text="lo", column=3).body
        assert [target["label"] for target in body["targets"]] == ["loss"]

    def test_goto(self, play: Play) -> None:
        """`gotoTargets` of the focused rank, and `goto` of the target's owner."""
        book, client = play.stopped(2)
        frame_of(client, book.thread(1))
        (target,) = client.ask("gotoTargets", source={"path": PATH}, line=LINE).body["targets"]
        client.ask("goto", threadId=book.thread(1), targetId=target["id"])
        book.wait(0.2)
        assert client.of("stopped")[-1]["reason"] == "goto"

    def test_step_in_targets(self, play: Play) -> None:
        """`stepInTargets`, and `stepIn` with one of them."""
        book, client = play.stopped(2)
        frame = frame_of(client, book.thread(1))
        (target,) = client.ask("stepInTargets", frameId=frame).body["targets"]
        thread = book.thread(1)
        client.ask("stepIn", threadId=thread, targetId=target["id"], singleThread=True)
        book.wait(1)
        assert lines(book) == [LINE, LINE + 1]

    def test_exception_info(self, play: Play) -> None:
        """`exceptionInfo` after an exception stop; elsewhere refused: it kills a connection."""
        book, client = play.attached(2)
        with book.happens():
            book.rank(0).hits(LINE)
            book.rank(1).raises()
        book.wait(0.1)
        info = client.ask("exceptionInfo", threadId=book.thread(1)).body
        assert info["description"] == "loss is nan"
        refusal = client.ask("exceptionInfo", threadId=book.thread(0)).refusal
        assert "not stopped at an exception" in refusal
        assert not book.rank(0).dead

    def test_modules_and_source(self, play: Play) -> None:
        """`modules` and `source` of the focused rank; its own words when it has none."""
        _, client = play.stopped(2)
        assert client.ask("modules", startModule=0).body["modules"][0]["path"] == PATH
        assert client.ask("source", sourceReference=0).refusal == "Source unavailable"

    def test_set_debugger_property(self, play: Play) -> None:
        """debugpy's own `setDebuggerProperty`."""
        _, client = play.stopped(1)
        assert client.ask("setDebuggerProperty", skipSuspendOnBreakpointException=[]).body == {}


class TestControl:
    def test_pause(self, play: Play) -> None:
        """`pause` is answered at once; a rank blocked in C is shown pausing and not waited for."""
        book, client = play.attached(2)
        book.rank(1).slow = True
        assert client.ask("pause", threadId=book.thread(0)).body == {}
        book.wait(0.1)
        assert [body["threadId"] for body in client.of("stopped")] == [book.thread(0)]
        assert client.ask("list").body["counts"]["pausing"] == 1
        book.arrives(1)
        book.wait(0.2)
        assert client.of("stopped")[-1]["threadId"] == book.thread(0)

    @pytest.mark.parametrize(("command", "line"), [("next", 7), ("stepIn", 7), ("stepOut", 12)])
    def test_steps(self, play: Play, command: str, line: int) -> None:
        """Each kind of step takes the whole class along."""
        book, client = play.stopped(3)
        client.ask(command, threadId=book.thread(0))
        book.wait(0.1)
        assert lines(book) == [line] * 3
        assert client.of("stopped")[-1]["reason"] == "step"

    def test_step_while_running(self, play: Play) -> None:
        """A running rank cannot step: said at once."""
        book, client = play.attached(2)
        assert "is running" in client.ask("next", threadId=book.thread(0)).refusal

    @pytest.mark.parametrize("command", ["stepBack", "reverseContinue"])
    def test_backwards(self, play: Play, command: str) -> None:
        """No debugpy goes back: it is neither offered nor sent to one."""
        book, client = play.stopped(2)
        refusal = client.ask(command, threadId=book.thread(0)).refusal
        assert "works in a recording or a replay only" in refusal
        assert command not in book.rank(0).heard


def test_refused(play: Play) -> None:
    """What nobody answers is refused at once and never forwarded; an unknown request too."""
    book, client = play.stopped(1)
    arguments = {"threadId": book.thread(0), "frameId": frame_of(client, book.thread(0))}
    refusals = [client.ask(command, **ARGUMENTS[command](arguments)).refusal for command in REFUSED]
    assert all("not supported" in refusal for refusal in refusals)
    assert "unknown request" in client.ask("makeCoffee").refusal
    assert not book.rank(0).dead


_Arguments = Callable[[dict[str, int]], dict[str, Any]]
_NONE: _Arguments = lambda ids: {}  # noqa: E731
ARGUMENTS: dict[str, _Arguments] = {
    "cancel": lambda ids: {"requestId": 1},
    "breakpointLocations": lambda ids: {"source": {"path": PATH}, "line": 1},
    "dataBreakpointInfo": lambda ids: {"name": "loss"},
    "setDataBreakpoints": lambda ids: {"breakpoints": []},
    "setInstructionBreakpoints": lambda ids: {"breakpoints": []},
    "restartFrame": lambda ids: {"frameId": ids["frameId"]},
    "terminateThreads": lambda ids: {"threadIds": [ids["threadId"]]},
    "loadedSources": _NONE,
    "readMemory": lambda ids: {"memoryReference": "0x1", "count": 1},
    "writeMemory": lambda ids: {"memoryReference": "0x1", "data": "AA=="},
    "disassemble": lambda ids: {"memoryReference": "0x1", "instructionCount": 1},
    "locations": lambda ids: {"locationReference": 1},
    "runInTerminal": lambda ids: {"cwd": "/", "args": ["ls"]},
    "startDebugging": lambda ids: {"request": "attach", "configuration": {}},
}
