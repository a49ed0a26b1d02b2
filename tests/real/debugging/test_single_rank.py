"""With one rank behind it, what debugpy does is what the client sees.

The same conversation is held with debugpy itself and with a session over it; ids are neutral.
What differs is written down here, with the reason.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.conftest import Connect
from tests.real.debugging.side_by_side import Diary, Talk, neutral
from tests.real.driving import Lines, script
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import debugpy_ranks
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM: Final = script("alone")
WORK, CALL, FAIL = (line_of(PROGRAM, mark) for mark in ("work", "call", "fail"))


class WholeTalk(Talk):
    """A conversation from the handshake to the end, with every event in it."""

    async def hold(self) -> Diary:
        """All of it, to the end of the program."""
        lines: Lines = {PROGRAM: [WORK, {"line": CALL, "condition": "1 / 0"}]}
        attach = {"justMyCode": False, "redirectOutput": True}
        await self.client.handshake(attach, breakpoints=lines, exception_filters=["uncaught"])
        stop = await self.client.wait_event("stopped")
        # A stop is told before the threads' names are known where those take a second.
        for _ in ("MainThread", "helper"):
            await self.client.wait_event("thread", lambda body: body["reason"] == "started")
        await self.look(stop["threadId"])
        await self.ask("next", threadId=stop["threadId"])
        await self.client.wait_event("stopped")
        # As editors do: a stop that nobody looks at counts as seen in a while, and who runs by
        # then is told of once more.
        await self.ask("stackTrace", threadId=stop["threadId"])
        await self.ask("continue", threadId=stop["threadId"])
        stop = await self.client.wait_event("stopped")
        await self.ask("exceptionInfo", threadId=stop["threadId"])
        told = len(self.client.events)
        await self.ask("continue", threadId=stop["threadId"])
        await self.client.wait_event("terminated")
        self.note_events(told)
        return self.diary

    async def look(self, thread: int) -> None:
        await self.ask("threads")
        frame = (await self.ask("stackTrace", threadId=thread))["stackFrames"][0]["id"]
        scopes = (await self.ask("scopes", frameId=frame))["scopes"]
        reference = scopes[0]["variablesReference"]
        await self.ask("variables", variablesReference=reference)
        for context in ("watch", "hover", "repl"):
            for expression in ("number * 2", "absent", "number +", "{'a': [number]}"):
                await self.ask("evaluate", expression=expression, context=context, frameId=frame)
        await self.ask("setVariable", variablesReference=reference, name="number", value="20")
        await self.ask("setVariable", variablesReference=reference, name="number", value="absent")
        await self.ask("setExpression", expression="number", value="21", frameId=frame)
        await self.ask("completions", text="numb", column=5, frameId=frame)
        await self.ask("stepInTargets", frameId=frame)
        await self.ask("source", sourceReference=0, source={"path": PROGRAM})
        await self.ask("gotoTargets", source={"path": PROGRAM}, line=WORK)
        await self.ask("modules")

    def note_events(self, last: int) -> None:
        """From the `last` on the process is ending: its `continued` may not get out any more."""
        for number, event in enumerate(self.client.events):
            body = event.get("body", {})
            if event["event"] == "continued" and number >= last:
                continue
            if not self.is_output(event):
                self.diary.events[f"{event['event']}: {neutral(body)}"] += 1


# What debugpy alone says, before any client of ours has introduced itself.
ONLY_DEBUGPY: Final = ['debugpyWaitingForServer: {"host": "127.0.0.1", "port": "an id"}']


# Alone: an ending program gives pydevd half a second to send what it has printed.
@pytest.mark.heavy
@pytest.mark.alone
async def test_the_same_conversation(connect: Connect) -> None:
    async with debugpy_ranks(1, PROGRAM) as (rank,):
        client = await connect(rank.port, strict=False)
        direct = await WholeTalk(client, PROGRAM).hold()
        assert await rank.ended() == 1
    async with debugpy_ranks(1, PROGRAM) as (rank,), session([rank.port]) as running:
        merged = await WholeTalk(await running.client(), PROGRAM).hold()
        assert await rank.ended() == 1
    assert merged.answers == direct.answers
    assert merged.output == direct.output
    assert sorted((direct.events - merged.events).elements()) == ONLY_DEBUGPY
    assert sorted((merged.events - direct.events).elements()) == []


async def test_what_is_evaluated_before_the_program_runs_stops_nobody() -> None:
    """Even where every raised exception is to stop: who waits evaluates in its main thread."""
    catches = "str(__import__('pathlib').Path('/x'))"  # an AttributeError, within
    async with debugpy_ranks(1, PROGRAM) as (rank,), session([rank.port]) as running:
        client = await running.client()
        await client.request("initialize", {"adapterID": "test", "clientID": "vscode"})
        attached = client.send("attach", {"justMyCode": False})
        await client.wait_event("initialized")
        await client.request("setExceptionBreakpoints", {"filters": ["raised"]})
        for _ in range(30):  # several threads take turns
            asked = {"expression": catches, "context": "watch"}
            answer = await client.request("evaluate", asked, timeout=LIMIT)
            assert answer["result"] == "/x"
        assert not [each for each in client.events if each["event"] == "stopped"]
        await client.request("setExceptionBreakpoints", {"filters": []})
        await client.request("configurationDone")
        assert (await attached)["success"]
        await client.disconnect()
