"""One conversation held twice: with debugpy itself, and with a session over it.

Ids are neutral in what is noted. Everything else must be the same, but for what a test says.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dap_mux.client import DapClient, Json
from dap_mux.engine.values.inspect import without_debugger_frames
from tests.conftest import Connect
from tests.real.driving import Lines, script
from tests.support.processes.commands import line_of
from tests.support.processes.ranks import Rank, debugpy_ranks
from tests.support.session import session

IDS: Final = frozenset({"id", "threadId", "frameId", "hitBreakpointIds", "systemProcessId", "port"})
DEFAULTS: Final = [("preserveFocusHint", False)]  # DAP: "if true"; the same as not there
CLOCK: Final = re.compile(r"^[0-9.]+s - ", re.MULTILINE)  # pydevd's own: seconds since its start
# Addresses of objects, which debugpy takes for names of a set's elements, and its thread ids.
OF_THE_PROCESS: Final = re.compile(r"\b(0x[0-9a-f]+|pid_\d+_id_\d+|\d{12,})\b")
# A session says that a source is Python's; debugpy does not.
ADDED: Final = frozenset({"mimeType"})


@dataclass
class Diary:
    """What one client was told, ids neutral: answers in order, events by what they say."""

    answers: list[str] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    output: dict[str, str] = field(default_factory=dict)
    exit_code: int | None = None


class Talk:
    """Holds the conversation with whichever server answers at the other end."""

    def __init__(self, client: DapClient, program: str) -> None:
        self.client = client
        self.program = program
        self.diary = Diary()
        self.thread = 0
        self.frame = 0

    def line(self, mark: str) -> int:
        """Return the number of the program's line with this mark."""
        return line_of(self.program, mark)

    async def attach(
        self,
        *lines: int | Mapping[str, Any],
        filters: Iterable[str] = (),
        client_id: str = "vscode",
        **arguments: Any,
    ) -> None:
        """Attach and configure, with breakpoints in the program."""
        wanted: Lines = {self.program: list(lines)}
        attach = {"justMyCode": False, "redirectOutput": True, **arguments}
        await self.client.handshake(
            attach, breakpoints=wanted, exception_filters=filters, client_id=client_id
        )

    async def ask(self, command: str, **arguments: object) -> Json:
        """Send a request and note its response, success or not; return the body."""
        response = await self.client.send(command, arguments)
        said = {key: response.get(key) for key in ("success", "message", "body")}
        if command == "evaluate":  # a session leaves out the frames of pydevd (see conformance.md)
            said["message"] = without_debugger_frames(said["message"] or "") or None
        if not response["success"]:
            said.pop("body")  # ours has the error body that DAP asks for, debugpy's has none
        self.diary.answers.append(f"{command}: {neutral(said)}")
        return dict(response.get("body") or {})

    async def refused(self, command: str, **arguments: object) -> None:
        """Send a request that must fail; each server has words of its own for it."""
        response = await self.client.send(command, arguments)
        assert not response["success"], response

    async def breakpoints(self, *lines: int | Mapping[str, Any]) -> Json:
        """Replace the program's breakpoints."""
        wanted = [{"line": one} if isinstance(one, int) else dict(one) for one in lines]
        return await self.ask("setBreakpoints", source={"path": self.program}, breakpoints=wanted)

    async def stop(self, *, frames: int = 3) -> Json:
        """Wait for the next stop; note it, and where its innermost frames are."""
        body = await self.client.wait_event("stopped")
        self.thread = body["threadId"]
        self.diary.answers.append(f"stopped: {neutral(body)}")
        stack = await self.ask("stackTrace", threadId=self.thread, levels=frames)
        self.frame = stack["stackFrames"][0]["id"]
        return body

    async def go(self, command: str = "continue", **arguments: object) -> None:
        """Resume the thread that stopped last."""
        await self.ask(command, **{"threadId": self.thread, **arguments})

    async def begin(self, *lines: int | Mapping[str, Any], **how: Any) -> None:
        """Attach, and wait for the first stop."""
        await self.attach(*lines, **how)
        await self.stop()

    async def move(self, command: str = "continue", **arguments: object) -> None:
        """Resume the thread that stopped last, and wait for the next stop."""
        await self.go(command, **arguments)
        await self.stop()

    async def run_out(self) -> None:
        """Continue to the end of the session."""
        await self.go()
        await self.end()

    async def evaluate(self, *expressions: str, context: str = "watch", **more: object) -> None:
        """Evaluate in the frame that was stopped in last."""
        for expression in expressions:
            asked = {"expression": expression, "context": context, "frameId": self.frame}
            await self.ask("evaluate", **{**asked, **more})

    async def locals(self) -> Json:
        """Return the local variables of the frame, by name, after noting them."""
        scopes = (await self.ask("scopes", frameId=self.frame))["scopes"]
        reference = scopes[0]["variablesReference"]
        found = (await self.ask("variables", variablesReference=reference))["variables"]
        return {"": reference, **{one["name"]: one["variablesReference"] for one in found}}

    async def end(self) -> None:
        """Wait for the end of the session, and note what was told on the way."""
        await self.client.wait_event("terminated")
        self.note()

    def note(self) -> None:
        """Note all events so far; `stopped` and `continued` are told by each conversation."""
        for event in self.client.events:
            name = event["event"]
            if not self.is_output(event) and name not in ("continued", "stopped"):
                self.diary.events[f"{name}: {neutral(event.get('body', {}))}"] += 1

    def is_output(self, event: Json) -> bool:
        """Whether the event is output; then it is noted as such."""
        body = event.get("body", {})
        if event["event"] != "output" or body.get("category") == "telemetry":
            return False
        category, text = body.get("category", "console"), CLOCK.sub("", body["output"])
        self.diary.output[category] = self.diary.output.get(category, "") + text
        return True


Conversation = Callable[[Talk], Awaitable[None]]


async def both(
    connect: Connect, name: str, conversation: Conversation, arguments: Sequence[str] = ()
) -> tuple[Diary, Diary]:
    """Hold the conversation with debugpy alone and with a session; return both diaries.

    At the same time, since debugpy alone waits much.
    """
    program = script(name)

    async def hold(client: DapClient, rank: Rank) -> Diary:
        talk = Talk(client, program)
        await conversation(talk)
        talk.diary.exit_code = await rank.ended()
        return talk.diary

    async with (
        debugpy_ranks(1, program, arguments=arguments) as (alone,),
        debugpy_ranks(1, program, arguments=arguments) as (behind,),
        session([behind.port]) as running,
    ):
        direct = hold(await connect(alone.port, strict=False), alone)
        merged = hold(await running.client(), behind)
        return await asyncio.gather(direct, merged)


def neutral(value: Any) -> str:
    """The value as text; ids say only whether there is one, and lists of ids are not counted."""

    def told(key: str, item: Any) -> Any:
        if key in IDS:
            return "an id"
        return bool(item) if key == "variablesReference" else walk(item)

    def walk(item: Any) -> Any:
        if isinstance(item, dict):
            said = {
                key: v for key, v in item.items() if key not in ADDED and (key, v) not in DEFAULTS
            }
            return {key: told(key, v) for key, v in said.items()}
        if isinstance(item, list):
            return [walk(one) for one in item]
        return OF_THE_PROCESS.sub("(of this process)", item) if isinstance(item, str) else item

    return json.dumps(walk(value), sort_keys=True)
