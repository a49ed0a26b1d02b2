"""What we rely on in a rank, checked against real debugpy and against our double of it.

Each check gets a fresh rank that runs `fake_program.SCRIPT` and waits for a client; those in
`FAILING` get one whose third step raises. All of it was measured before it was written here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from dap_mux.client import DapClient, RequestFailed
from dap_mux.engine.ranks.patching import YES, attach_expression
from dap_mux.engine.values.fan_out import RAW
from dap_mux.pure.remote import call
from dap_mux.rank.in_process import SESSION
from dap_mux.rank.own_port import SERVED
from tests.support.fake_rank.injected_calls import INJECTED
from tests.support.fake_rank.program import CALL, FIRST, STEP
from tests.support.fake_rank.rank import CAPABILITIES

LIMIT: Final = 30.0  # s; not a wait
Json = dict[str, Any]
INTRODUCTION: Final = {
    "clientID": "contract",
    "adapterID": "debugpy",
    "linesStartAt1": True,
    "columnsStartAt1": True,
    "pathFormat": "path",
}


@dataclass
class Bench:
    """A rank that waits, seen through one connection.

    `silence`: seconds without an answer that count as none; debugpy's answers take 50 ms.
    """

    client: DapClient
    path: str
    silence: float = 0.5

    async def start(self, *lines: int) -> None:
        """Let it run, with breakpoints on these lines.

        Its thread has a number once it is told of: at the latest by the answer to `threads`, else
        by an event that debugpy sends some time after its answer to `configurationDone`. Until
        then requests for it are refused as wrong.
        """
        await self.client.handshake(
            {"justMyCode": True},
            breakpoints={self.path: list(lines)},
            exception_filters=["uncaught"],
        )
        rows = (await self.client.request("threads"))["threads"]
        assert [row["id"] for row in rows] == [1]

    async def stopped(self, *lines: int) -> Json:
        """Let it run to its first stop; return the body of that."""
        await self.start(*(lines or (FIRST,)))
        return await self.client.wait_event("stopped")

    async def stack(self) -> list[Json]:
        """The frames of its thread."""
        answer = await self.client.request("stackTrace", {"threadId": 1})
        frames: list[Json] = answer["stackFrames"]
        return frames

    async def step(self) -> int:
        """How far the program's loop has come, -1 before it has begun."""
        asked = {"expression": STEP, "context": "watch"}
        return int((await self.client.request("evaluate", asked))["result"])

    async def goes_on(self) -> None:
        """Wait until its program runs: it was told to, and debugpy is done with it."""
        before = step = await self.step()
        deadline = time.monotonic() + LIMIT
        while step <= before:
            assert time.monotonic() < deadline, f"still at step {step}"
            await asyncio.sleep(0.01)
            step = await self.step()

    async def unanswered(self, command: str, arguments: Json | None = None) -> None:
        """Send a request and see that no answer comes."""
        sent = self.client.send(command, arguments or {})
        done, _ = await asyncio.wait([sent], timeout=self.silence)
        assert not done, sent.result()

    async def dies_of(self, command: str, arguments: Json | None = None) -> None:
        """A request without an answer kills the connection: nothing is answered from then on."""
        for sent, given in ((command, arguments), ("threads", None), ("disconnect", None)):
            await self.unanswered(sent, given)


async def says_terminated_and_answers(client: DapClient) -> None:
    """`disconnect` from an adapter. What the rank said last may come between or after."""
    answer = await client.send("disconnect", {})
    assert answer["success"]
    (terminated,) = (event for event in client.events if event["event"] == "terminated")
    assert terminated["seq"] < answer["seq"]  # one thread sends both


async def attach_is_answered_after_configuration_done(bench: Bench) -> None:
    client = bench.client
    await client.request("initialize", INTRODUCTION)
    attached = client.send("attach", {"justMyCode": True})
    await client.wait_event("initialized")
    assert not attached.done()
    assert not any(event["event"] == "process" for event in client.events)
    await client.request("configurationDone")
    assert (await attached)["success"]
    assert (await client.wait_event("process"))["startMethod"] == "attach"
    assert (await client.wait_event("thread")) == {"reason": "started", "threadId": 1}


async def speaks_before_it_is_spoken_to(bench: Bench) -> None:
    """But an `initialize` sent at once may be answered first: two threads of debugpy write."""
    await bench.client.wait_event("output")
    sockets = await bench.client.wait_event("debugpySockets")
    assert any(socket["internal"] for socket in sockets["sockets"])


async def it_offers_what_the_double_offers(bench: Bench) -> None:
    body = await bench.client.request("initialize", INTRODUCTION)
    assert body == CAPABILITIES, {*map(str, body.items())} ^ {*map(str, CAPABILITIES.items())}


async def attach_needs_arguments(bench: Bench) -> None:
    await bench.client.request("initialize", INTRODUCTION)
    with pytest.raises(RequestFailed, match="missing"):
        await bench.client.request("attach", {})


async def nothing_is_available_before_attach(bench: Bench) -> None:
    client = bench.client
    await client.request("initialize", INTRODUCTION)
    source = {"source": {"path": bench.path}, "breakpoints": [{"line": FIRST}]}
    for command, arguments in (("setBreakpoints", source), ("threads", None)):
        with pytest.raises(RequestFailed, match="Server is not available"):
            await client.request(command, arguments)
    with pytest.raises(RequestFailed, match="only allowed during handling"):
        await client.request("configurationDone")


async def breakpoints_have_small_ids_and_move(bench: Bench) -> None:
    client = bench.client
    await client.request("initialize", INTRODUCTION)
    client.send("attach", {"justMyCode": True})
    await client.wait_event("initialized")

    async def bind(path: str, line: int) -> Json:
        source = {"source": {"path": path}, "breakpoints": [{"line": line}]}
        body: Json = (await client.request("setBreakpoints", source))["breakpoints"][0]
        return body

    first, past = await bind(bench.path, FIRST), await bind(bench.path, 999)
    missing = await bind("/no/such/file.py", FIRST)
    assert (first["id"], first["verified"], first["line"]) == (0, True, FIRST)
    assert (past["id"], past["verified"], past["line"]) == (1, True, 14)
    assert (missing["id"], missing["verified"]) == (2, False)
    assert missing["message"] == "Breakpoint in file that does not exist."
    await client.request("configurationDone")


async def a_stop_speaks_of_all_threads(bench: Bench) -> None:
    stop = await bench.stopped()
    assert (stop["reason"], stop["threadId"]) == ("breakpoint", 1)
    assert stop["allThreadsStopped"] is True
    assert stop["hitBreakpointIds"] == [0]


async def ids_are_small_and_last_as_long_as_their_call(bench: Bench) -> None:
    await bench.stopped()
    first = await bench.stack()
    assert [frame["name"] for frame in first] == ["train", "<module>"]
    assert [frame["line"] for frame in first] == [FIRST, CALL]
    assert first == await bench.stack()
    assert max(frame["id"] for frame in first) < 10
    await bench.client.request("continue", {"threadId": 1})
    await bench.client.wait_event("stopped")
    second = await bench.stack()
    assert second[1]["id"] == first[1]["id"]
    # That of the call which has returned may be given out again: pydevd makes it of an address.
    assert second[0]["id"] != second[1]["id"]


async def wrong_ids_are_errors(bench: Bench) -> None:
    await bench.stopped()
    wrong: dict[str, Json] = {
        "scopes": {"frameId": 999},
        "variables": {"variablesReference": 999},
        "stackTrace": {"threadId": 999},
        "evaluate": {"frameId": 999, "expression": "1+1"},
    }
    for command, arguments in wrong.items():
        with pytest.raises(RequestFailed, match="Wrong ID sent from the client: 999"):
            await bench.client.request(command, arguments)


async def values_can_be_read_and_set(bench: Bench) -> None:
    await bench.stopped()
    (frame, _) = await bench.stack()
    scopes = (await bench.client.request("scopes", {"frameId": frame["id"]}))["scopes"]
    assert [scope["name"] for scope in scopes] == ["Locals", "Globals"]
    reference = scopes[0]["variablesReference"]
    values = await bench.client.request("variables", {"variablesReference": reference})
    assert "step" in [value["name"] for value in values["variables"]]
    wanted = {"variablesReference": reference, "name": "step", "value": "41"}
    assert (await bench.client.request("setVariable", wanted))["value"] == "41"
    asked = {"expression": "step", "frameId": frame["id"], "context": "watch"}
    assert (await bench.client.request("evaluate", asked))["result"] == "41"
    with pytest.raises(RequestFailed, match="NameError"):
        await bench.client.request("evaluate", {**asked, "expression": "nope"})


async def a_step_is_answered_then_continues_then_stops(bench: Bench) -> None:
    await bench.stopped()
    assert (await bench.client.send("next", {"threadId": 1}))["success"]
    resumed = await bench.client.wait_event("continued")
    assert resumed == {"threadId": 1, "allThreadsContinued": True}
    stop = await bench.client.wait_event("stopped")
    assert stop["reason"] == "step"
    assert "hitBreakpointIds" not in stop
    assert (await bench.stack())[0]["line"] == FIRST + 1


async def a_step_is_brief_once_patched(bench: Bench) -> None:
    """Its stop tells stack and thread as `stackTrace` and `threads` do, and it alone is told."""
    assert "stackFrames" not in await bench.stopped()
    patches = attach_expression(INJECTED, debug_children=False)
    patched = await bench.client.request("evaluate", {"expression": patches, "context": "watch"})
    assert patched["result"].split(" ")[:2] == [YES, YES]
    for command in ("next", "stepOut", "next"):
        await bench.client.request(command, {"threadId": 1})
        stop = await bench.client.wait_event("stopped")
        frames = await bench.stack()
        assert stop["stackFrames"] == frames
        (row,) = (await bench.client.request("threads"))["threads"]
        assert (stop["threadId"], stop["threadName"]) == (row["id"], row["name"])
        line = call(INJECTED["pdb_views"], "line_text", str(frames[0]["line"]))
        asked = {"expression": line, "frameId": frames[0]["id"], "context": "watch", **RAW}
        assert stop["lineText"] == (await bench.client.request("evaluate", asked))["result"]
    assert "continued" not in [event["event"] for event in bench.client.events]
    await bench.client.request("continue", {"threadId": 1})
    await bench.client.wait_event("continued")


async def step_out_ends_at_the_call(bench: Bench) -> None:
    await bench.stopped()
    await bench.client.request("stepOut", {"threadId": 1})
    await bench.client.wait_event("stopped")
    assert [frame["line"] for frame in await bench.stack()] == [CALL]


async def pause_stops_a_running_rank(bench: Bench) -> None:
    """Whatever the number, it means all threads: the adapter sends "*"."""
    await bench.start()
    await bench.client.request("pause", {"threadId": 999})
    stop = await bench.client.wait_event("stopped")
    assert (stop["reason"], stop["allThreadsStopped"]) == ("pause", True)


async def a_running_rank_evaluates_without_a_frame_only(bench: Bench) -> None:
    await bench.stopped()
    (frame, _) = await bench.stack()
    source = {"source": {"path": bench.path}, "breakpoints": []}
    await bench.client.request("setBreakpoints", source)
    answer = await bench.client.request("continue", {"threadId": 1})
    assert answer == {"allThreadsContinued": True}
    await bench.client.wait_event("continued")
    await bench.goes_on()  # for a moment a thread that has said so still has its frames
    assert (await bench.client.request("evaluate", {"expression": "1+1"}))["result"] == "2"
    asked = {"expression": "1+1", "frameId": frame["id"]}
    with pytest.raises(RequestFailed, match="Unable to find thread"):
        await bench.client.request("evaluate", asked)


async def continue_while_running_kills_the_connection(bench: Bench) -> None:
    await bench.start()
    await bench.dies_of("continue", {"threadId": 1})


async def exception_info_while_running_kills_it(bench: Bench) -> None:
    await bench.start()
    await bench.goes_on()  # a thread that waits for a debugger would answer
    await bench.dies_of("exceptionInfo", {"threadId": 1})


async def exception_info_without_an_exception_is_made_up(bench: Bench) -> None:
    await bench.stopped()
    info = await bench.client.request("exceptionInfo", {"threadId": 1})
    assert info["exceptionId"] == "exception: type unknown"
    assert info["breakMode"] == "unhandled"


async def loaded_sources_kills_it(bench: Bench) -> None:
    await bench.stopped()
    await bench.dies_of("loadedSources")


async def restart_frame_kills_it(bench: Bench) -> None:
    await bench.stopped()
    (frame, _) = await bench.stack()
    await bench.dies_of("restartFrame", {"frameId": frame["id"]})


async def cancel_kills_it(bench: Bench) -> None:
    await bench.stopped()
    await bench.dies_of("cancel", {"requestId": 1})


async def disconnect_says_terminated_first(bench: Bench) -> None:
    await bench.stopped()
    await says_terminated_and_answers(bench.client)


async def an_uncaught_exception_stops(bench: Bench) -> None:
    await bench.start()
    stop = await bench.client.wait_event("stopped")
    assert (stop["reason"], stop["description"]) == ("exception", "loss is nan")
    info = await bench.client.request("exceptionInfo", {"threadId": 1})
    assert (info["breakMode"], info["description"]) == ("unhandled", "loss is nan")


async def the_end_is_told_by_terminated_alone(bench: Bench) -> None:
    await bench.start()
    await bench.client.wait_event("stopped")
    await bench.client.request("continue", {"threadId": 1})
    await bench.client.wait_event("thread", lambda body: body["reason"] == "exited")
    await bench.client.wait_event("terminated")
    assert not any(event["event"] == "exited" for event in bench.client.events)


async def begin_alone(client: DapClient) -> None:
    """Make oneself known as a session: the rank says that it has no adapter."""
    await client.request("initialize", {**INTRODUCTION, SESSION: {"key": "contract"}})
    assert set(await client.wait_event(SERVED)) == {"debugpy"}


async def attach_is_answered_at_once(bench: Bench) -> None:
    """Of a rank that calls; so is `configurationDone`, and only then it runs."""
    client = bench.client
    await client.request("initialize", INTRODUCTION)
    assert (await client.send("attach", {"justMyCode": True}))["success"]
    assert (await client.wait_event("process"))["startMethod"] == "attach"
    await client.wait_event("initialized")
    assert (await client.wait_event("thread")) == {"reason": "started", "threadId": 1}
    assert await bench.step() == -1
    assert (await client.send("configurationDone", {}))["success"]
    await bench.goes_on()


async def pause_stops_all_threads(bench: Bench) -> None:
    """Of a rank that calls: by "*", for it refuses an id that it has not told."""
    await bench.start()
    with pytest.raises(RequestFailed, match="Wrong ID sent from the client: 999"):
        await bench.client.request("pause", {"threadId": 999})
    await bench.client.request("pause", {"threadId": "*"})
    stop = await bench.client.wait_event("stopped")
    assert (stop["reason"], stop["allThreadsStopped"]) == ("pause", True)
    answer = await bench.client.request("continue", {"threadId": "*"})
    assert answer == {"allThreadsContinued": True}


async def what_is_never_answered_harms_nobody_else(bench: Bench) -> None:
    """Of a rank that calls: such requests get no answer, and nothing else suffers."""
    await bench.start()
    await bench.unanswered("continue", {"threadId": 1})
    await bench.unanswered("loadedSources")
    assert (await bench.client.request("evaluate", {"expression": "1+1"}))["result"] == "2"
    assert (await bench.client.send("disconnect", {}))["success"]


async def disconnect_lets_it_run_on(bench: Bench) -> None:
    """Of a rank that calls: no word of an end, and the next debugger may use the connection."""
    stop = await bench.stopped()
    assert (await bench.client.send("disconnect", {}))["success"]
    assert not any(event["event"] == "terminated" for event in bench.client.events)
    assert (await bench.stopped())["threadId"] == stop["threadId"]


async def disconnect_hangs_up(bench: Bench) -> None:
    """Of a rank without an adapter that listens: the next debugger has a connection of its own."""
    await bench.stopped()
    assert (await bench.client.send("disconnect", {}))["success"]
    await bench.client.wait_for(
        lambda: not bench.client.open, timeout=LIMIT, what="the end of the connection"
    )
    assert not any(event["event"] == "terminated" for event in bench.client.events)


Check = Callable[[Bench], Awaitable[None]]
# What debugpy's adapter makes of its rank: one that calls us has none.
ADAPTERS: Final[list[Check]] = [
    attach_is_answered_after_configuration_done,
    speaks_before_it_is_spoken_to,
    it_offers_what_the_double_offers,
    attach_needs_arguments,
    nothing_is_available_before_attach,
    pause_stops_a_running_rank,
    continue_while_running_kills_the_connection,
    exception_info_while_running_kills_it,
    loaded_sources_kills_it,
    restart_frame_kills_it,
    cancel_kills_it,
    disconnect_says_terminated_first,
]
CHECKS: Final[list[Check]] = [
    *ADAPTERS,
    breakpoints_have_small_ids_and_move,
    a_stop_speaks_of_all_threads,
    ids_are_small_and_last_as_long_as_their_call,
    wrong_ids_are_errors,
    values_can_be_read_and_set,
    a_step_is_answered_then_continues_then_stops,
    a_step_is_brief_once_patched,
    step_out_ends_at_the_call,
    a_running_rank_evaluates_without_a_frame_only,
    exception_info_without_an_exception_is_made_up,
]
FAILING: Final[list[Check]] = [an_uncaught_exception_stops, the_end_is_told_by_terminated_alone]
CALLERS: Final[list[Check]] = [
    *(check for check in CHECKS if check not in ADAPTERS),
    attach_is_answered_at_once,
    pause_stops_all_threads,
    what_is_never_answered_harms_nobody_else,
    disconnect_lets_it_run_on,
]
ALONE: Final[list[Check]] = [
    *(check for check in CALLERS if check is not disconnect_lets_it_run_on),
    disconnect_hangs_up,
]


def _every(checks: list[Check]) -> pytest.MarkDecorator:
    each = [(check, False) for check in checks] + [(check, True) for check in FAILING]
    names = [check.__name__ for check, _ in each]
    return pytest.mark.parametrize(("check", "fails"), each, ids=names)


every_check_alone = _every(ALONE)
every_check_of_callers = _every(CALLERS)
every_check = _every(CHECKS)
