"""A modelled editor at a real port: it asks what the editor would ask, when it would ask it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from dap_mux.pure.protocol.messages import Framer, encode_frame
from tests.support.clients.conversation import Conversation
from tests.support.editors import Editor, VSCodeModel
from tests.support.editors.base import Json, State
from tests.support.processes.waiting import until


class LiveEditor:
    """Carries an editor model's messages; `asked` is every (command, threadId) it sent."""

    def __init__(
        self, model: Editor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.model = model
        self.asked: list[tuple[str, int | None]] = []
        self._reader = reader
        self._writer = writer
        self._conversation = Conversation(model.client_id)
        self._timers: list[asyncio.TimerHandle] = []
        self._attached = False
        self.stops = 0
        self._reading = asyncio.create_task(self._read())

    def send(self, requests: list[Json]) -> None:
        """Send what the model wants to ask."""
        for request in requests:
            self._conversation.client_sent(request)
            thread = request.get("arguments", {}).get("threadId")
            self.asked.append((request["command"], thread))
            self._writer.write(encode_frame(json.dumps(request).encode()))

    def ask(self, command: str, arguments: Mapping[str, Any]) -> None:
        """Send a request that the editor's user wrote, as an extension would."""
        self.model._ask(command, dict(arguments))
        self.send(self.model._sent())

    @property
    def at_rest(self) -> bool:
        """It has asked all that it wanted to know, and been answered."""
        return not self.model._waiting

    @property
    def shown(self) -> list[State]:
        """The states of the rows, in order."""
        return [state for _, state in self.model.threads.values()]

    def resumed(self) -> list[tuple[str, int | None]]:
        """Whom it has told to run."""
        runs = ("continue", "next", "stepIn", "stepOut")
        return [(command, thread) for command, thread in self.asked if command in runs]

    async def until(self, holds: Callable[[], object], what: str, *, within: float = 30) -> None:
        """Wait until the user sees something."""

        def seen() -> object:
            if self._reading.done():
                self._reading.result()
            return holds()

        try:
            await until(seen, within=within, what=what)
        except AssertionError as error:
            model = self.model
            state = f"{model.threads} focus {model.focus} arrow {model.arrow} {model.notices}"
            state += f" unanswered {sorted(model._waiting)} of {model.requests_sent}"
            raise AssertionError(f"{error}: {state} {self.asked[-12:]}") from None

    @property
    def joined(self) -> bool:
        """Its handshake is over."""
        asked = [command for command, _ in self.asked]
        return "configurationDone" in asked and self._attached

    def ended(self) -> bool:
        """Its connection is over; raise what was wrong with the conversation, if anything was."""
        if self._reading.done():
            self._reading.result()
        return self._reading.done()

    def abort(self) -> None:
        """Break the connection, as a reload of the window does."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Hang up; raise what was wrong with the conversation, if anything was."""
        for timer in self._timers:
            timer.cancel()
        self._writer.close()
        if not self.ended():
            self._reading.cancel()

    async def _read(self) -> None:
        with contextlib.suppress(OSError):  # reset: it is over all the same
            await self._read_on()

    async def _read_on(self) -> None:
        framer = Framer()
        while data := await self._reader.read(65536):
            for body in framer.feed(data):
                message = json.loads(body)
                self._conversation.server_sent(message)
                self._attached |= message.get("command") == "attach"
                self.stops += message.get("event") == "stopped"
                self.send(self.model.receive(message))
                self._set_timers(message)

    def _set_timers(self, message: Json) -> None:
        """VS Code's own: each event starts the timer that its source starts."""
        model = self.model
        if not isinstance(model, VSCodeModel):
            return
        timers = {
            "thread": (0.1, model.tick_100ms_after_thread_started),
            "stopped": (0.42, model.tick_420ms_after_stop),
            "continued": (0.8, model.tick_800ms_after_step),
        }
        if message.get("event") in timers:
            seconds, tick = timers[message["event"]]
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(seconds, lambda: self.send(tick())))


@asynccontextmanager
async def live(model: Editor, port: int, arguments: Mapping[str, Any]) -> AsyncIterator[LiveEditor]:
    """Start an editor's session with these launch.json attributes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    editor = LiveEditor(model, reader, writer)
    try:
        editor.send(model.start(arguments))
        yield editor
    finally:
        await editor.close()
