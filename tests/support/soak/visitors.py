"""Who joins a session in a soak: modelled editors, and a console. Each acts at random."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from dap_mux.client import ConnectionLost, DapClient
from tests.support.clients.conversation import Conversation
from tests.support.clients.live_editor import LiveEditor
from tests.support.editors import DapeModel, Editor, NvimDapModel, VSCodeModel
from tests.support.processes.waiting import until

Json = dict[str, Any]
LIMIT: Final = 30.0  # s; not a wait
ATTACH: Final[Json] = {"justMyCode": False, "redirectOutput": True}
MODELS: Final[tuple[type[Editor], ...]] = (VSCodeModel, NvimDapModel, DapeModel)
CONDITIONS: Final[tuple[Json, ...]] = (
    {},
    {},
    {"condition": "ranks(0-1): True"},
    {"condition": "$rank % 2 == 1"},
    {"hitCondition": "%7"},
    {"logMessage": "rank {RANK} of $world_size"},
)
CONTROLS: Final = ("continue", "continue", "next", "stepIn", "stepOut", "pause")


class Visitor(ABC):
    """One client; `here` until its connection ends, by whomever."""

    def __init__(self, name: str, source: str, lines: Sequence[int]) -> None:
        self.name = name
        self._source = source
        self._lines = lines

    def breakpoints(self, chance: Random) -> Json:
        """Draw the arguments of `setBreakpoints`; none at all is one of them."""
        lines = chance.sample(list(self._lines), chance.randint(0, 2))
        wanted = [{"line": line, **chance.choice(CONDITIONS)} for line in sorted(lines)]
        return {"source": {"path": self._source}, "breakpoints": wanted}

    @property
    @abstractmethod
    def here(self) -> bool: ...

    @property
    @abstractmethod
    def stops(self) -> int:
        """How many it was told of."""

    @abstractmethod
    def act(self, chance: Random) -> str:
        """Do one thing; return what."""

    @abstractmethod
    async def leave(self) -> None:
        """Disconnect in all politeness, with every request answered."""

    @abstractmethod
    async def vanish(self) -> None:
        """Break the connection."""


class EditorVisitor(Visitor):
    """A modelled editor, which asks for much by itself."""

    def __init__(self, name: str, editor: LiveEditor, source: str, lines: Sequence[int]) -> None:
        super().__init__(name, source, lines)
        self._editor = editor

    @classmethod
    async def join(
        cls, name: str, port: int, source: str, lines: Sequence[int], chance: Random
    ) -> EditorVisitor:
        """Start one of the models with some breakpoints."""
        chosen = chance.sample(list(lines), chance.randint(0, 1))
        model = chance.choice(MODELS)({source: chosen})
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        editor = LiveEditor(model, reader, writer)
        editor.send(model.start(ATTACH))
        return cls(f"{model.client_id} {name}", editor, source, lines)

    @property
    def here(self) -> bool:
        return not self._editor.ended()

    @property
    def stops(self) -> int:
        return self._editor.stops

    def act(self, chance: Random) -> str:
        if not self._editor.joined:
            return "waits"
        what = chance.choice(("key", "key", "row", "row", "breakpoints", "ask"))
        return str(getattr(self, f"_{what}")(chance))

    def _key(self, chance: Random) -> str:
        key = chance.choice(("press_f5", "press_f5", "press_f10"))
        self._editor.send(getattr(self._editor.model, key)())
        return key

    def _row(self, chance: Random) -> str:
        rows = list(self._editor.model.threads)
        if not rows:
            return "no rows"
        row, command = chance.choice(rows), chance.choice(CONTROLS)
        self._editor.send(self._editor.model.press_row_button(row, command))
        return f"{command} in row {row}"

    def _breakpoints(self, chance: Random) -> str:
        arguments = self.breakpoints(chance)
        self._editor.ask("setBreakpoints", arguments)
        return f"sets {arguments['breakpoints']}"

    def _ask(self, chance: Random) -> str:
        command, arguments = chance.choice(QUESTIONS)
        self._editor.ask(command, arguments)
        return command

    async def leave(self) -> None:
        await self._editor.until(
            lambda: self._editor.at_rest or self._editor.ended(),
            f"{self.name} is answered",
            within=LIMIT,
        )
        if self._editor.at_rest:  # else its line has broken just now
            self._editor.ask("disconnect", {"terminateDebuggee": False})
        await until(self._editor.ended, within=LIMIT, what=f"{self.name} is let go")
        await self._editor.close()

    async def vanish(self) -> None:
        self._editor.abort()
        await until(self._editor.ended, within=LIMIT, what=f"{self.name} is gone")
        await self._editor.close()


class ConsoleVisitor(Visitor):
    """A console: our own requests too, and our own events. `questions`: what it may ask."""

    questions: tuple[tuple[str, Json], ...] = ()

    def __init__(
        self, name: str, client: DapClient, talk: Conversation, source: str, lines: Sequence[int]
    ) -> None:
        super().__init__(f"console {name}", source, lines)
        self._client = client
        self._talk = talk
        self._asked: list[asyncio.Future[Json]] = []

    @classmethod
    async def join(
        cls, name: str, port: int, source: str, lines: Sequence[int], chance: Random
    ) -> ConsoleVisitor:
        """Attach without breakpoints."""
        talk = Conversation(f"console {name}")
        client = await DapClient.connect("127.0.0.1", port, tap=talk.tap)
        console = cls(name, client, talk, source, lines)
        console._ask("initialize", {"adapterID": "dap-mux", "clientID": "dap-mux"})
        console._ask("attach", {**ATTACH, "events": ["ranks"]})
        console._ask("configurationDone", {})
        return console

    @property
    def here(self) -> bool:
        if isinstance(self._client.failure, AssertionError):
            raise self._client.failure
        return self._client.open

    @property
    def stops(self) -> int:
        return sum(event["event"] == "stopped" for event in self._client.events)

    def act(self, chance: Random) -> str:
        self._asked = [future for future in self._asked if not future.done()]
        if chance.random() < 0.3:
            arguments = self.breakpoints(chance)
            self._ask("setBreakpoints", arguments)
            return f"sets {arguments['breakpoints']}"
        if chance.random() < 0.3:
            started = [e["body"] for e in self._client.events if e["event"] == "thread"]
            row = chance.choice(started)["threadId"] if started else 1
            command = chance.choice(CONTROLS)
            self._ask(command, {"threadId": row})
            return f"{command} in row {row}"
        command, arguments = chance.choice(self.questions or QUESTIONS + OWN)
        self._ask(command, dict(arguments))
        return command

    def _ask(self, command: str, arguments: Mapping[str, Any]) -> None:
        self._asked.append(self._client.send(command, arguments))

    async def leave(self) -> None:
        with contextlib.suppress(ConnectionLost):  # then it has left already
            await asyncio.wait_for(asyncio.gather(*self._asked), LIMIT)
            await self._client.disconnect(timeout=LIMIT)
            self._talk.finish()
        await self._client.close()

    async def vanish(self) -> None:
        await self._client.close()


QUESTIONS: Final[tuple[tuple[str, Json], ...]] = (
    ("evaluate", {"expression": "1 + 1"}),
    ("evaluate", {"expression": "RANK", "context": "repl"}),
    ("threads", {}),
    ("list", {}),
    ("modules", {}),
    ("setExceptionBreakpoints", {"filters": ["uncaught"]}),
)
OWN: Final[tuple[tuple[str, Json], ...]] = (
    ("focus", {"rank": 1}),
    ("focus", {"rank": 3}),
    ("scope", {"value": "rank"}),
    ("scope", {"value": "all"}),
    ("scope", {"value": "auto"}),
    ("view", {"value": "classes"}),
    ("view", {"value": "ranks"}),
    ("release", {"ranks": "2"}),
    ("list", {"ranks": "stopped"}),
)
