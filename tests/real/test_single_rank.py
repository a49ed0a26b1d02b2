"""With one rank behind it, what debugpy does is what the client sees.

The same conversation is held with debugpy itself and with a session over it; ids are neutral.
What differs is written down here, with the reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.client.wire import Json
from tests.conftest import Connect
from tests.real.driving import Lines, line_of, script
from tests.support.ranks import debugpy_ranks
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM: Final = script("alone")
WORK, CALL, FAIL = (line_of(PROGRAM, mark) for mark in ("work", "call", "fail"))
IDS: Final = frozenset({"id", "threadId", "frameId", "hitBreakpointIds", "systemProcessId", "port"})
DEFAULTS: Final = [("preserveFocusHint", False)]  # DAP: "if true"; the same as not there
CLOCK: Final = re.compile(r"^[0-9.]+s - ", re.MULTILINE)  # pydevd's own: seconds since its start


@dataclass
class Diary:
    """What one client was told, ids neutral: answers in order, events by what they say."""

    answers: list[str] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    output: str = ""


class Talk:
    """Holds the conversation with whoever answers at the other end."""

    def __init__(self, client: DapClient) -> None:
        self.client = client
        self.diary = Diary()

    async def ask(self, command: str, **arguments: object) -> Json:
        response = await self.client.send(command, arguments)
        said = {key: response.get(key) for key in ("success", "message", "body")}
        if not response["success"]:
            said.pop("body")  # ours has the error body that DAP asks for, debugpy's has none
        self.diary.answers.append(f"{command}: {neutral(said)}")
        return dict(response.get("body") or {})

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
            if event["event"] == "output" and body.get("category") != "telemetry":
                self.diary.output += CLOCK.sub("", body["output"])
            else:
                self.diary.events[f"{event['event']}: {neutral(body)}"] += 1


def neutral(value: Any) -> str:
    """The value as text; ids say only whether there is one, and lists of ids are not counted."""

    def told(key: str, item: Any) -> Any:
        if key in IDS:
            return "an id"
        return bool(item) if key == "variablesReference" else walk(item)

    def walk(item: Any) -> Any:
        if isinstance(item, dict):
            said = {key: v for key, v in item.items() if (key, v) not in DEFAULTS}
            return {key: told(key, v) for key, v in said.items()}
        return [walk(one) for one in item] if isinstance(item, list) else item

    return json.dumps(walk(value), sort_keys=True)


# What debugpy alone says, before any client of ours has introduced itself.
ONLY_DEBUGPY: Final = ['debugpyWaitingForServer: {"host": "127.0.0.1", "port": "an id"}']


# Alone: an ending program gives pydevd half a second to send what it has printed.
@pytest.mark.alone
async def test_the_same_conversation(connect: Connect) -> None:
    async with debugpy_ranks(1, PROGRAM) as (rank,):
        direct = await Talk(await connect(rank.port, strict=False)).hold()
        assert await rank.ended() == 1
    async with debugpy_ranks(1, PROGRAM) as (rank,), session([rank.port]) as running:
        merged = await Talk(await running.client()).hold()
        assert await rank.ended() == 1
    assert merged.answers == direct.answers
    assert merged.output == direct.output
    assert sorted((direct.events - merged.events).elements()) == ONLY_DEBUGPY
    assert sorted((merged.events - direct.events).elements()) == []
