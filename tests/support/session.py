"""A whole session inside the test: real engine, real sockets, every message checked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
from msgspec.structs import replace

from dap_mux.client import DapClient
from dap_mux.engine import Engine, Settings, inputs
from dap_mux.engine.outputs import Output, ToClient, ToRank
from dap_mux.pure.endpoint import Endpoint
from dap_mux.session.session import RELEASE_TIMEOUT_S, injected_sources
from dap_mux.shell.driver import Driver
from dap_mux.shell.listeners import listen
from dap_mux.system.user_files import new_token
from tests.support.clients.conversation import Conversation
from tests.support.outputs import singly
from tests.support.schema import Json, validate

AT_ONCE: Final = frozenset({"continue", "pause", "next", "stepIn", "stepOut"})


class CheckedEngine(Engine):
    """Holds every message to a rank against the schema; clients have a `Conversation` each.

    Control requests are answered at once, whatever ranks do: before anything else happens.

    `told`: all of them, as sent. `asked` and `events`: what clients ask for, and what happens to
    them, by name and as it comes. `observers` are called with each input and its outputs.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(injected_sources(), settings)
        self.told: list[bytes] = []
        self.asked: list[str] = []
        self.events: list[Json] = []
        self.observers: list[Callable[[inputs.Input, list[Output]], None]] = []

    def receive(self, happened: inputs.Input) -> list[Output]:
        """Check what goes out."""
        command = happened.message.command if isinstance(happened, inputs.ClientSaid) else ""
        self.asked += [command] if command else []
        out = super().receive(happened)
        if isinstance(happened, inputs.ClientSaid) and command in AT_ONCE:
            assert _answers(happened, out), happened
        for output in singly(out):
            if isinstance(output, ToRank):
                validate(json.loads(output.body))
                self.told.append(output.body)
            elif isinstance(output, ToClient) and b'"event"' in output.body:
                message = json.loads(output.body)
                self.events += [message] if message["type"] == "event" else []
        for observe in self.observers:
            observe(happened, out)
        return out


def _answers(said: inputs.ClientSaid, out: Iterable[Output]) -> bool:
    told = (json.loads(one.body) for one in out if isinstance(one, ToClient))
    return any(message.get("request_seq") == said.message.seq for message in told)


class Session:
    """A running session; clients made by `client` are checked and closed at its end."""

    def __init__(self, driver: Driver, port: int) -> None:
        self.driver = driver
        self.port = port
        self._clients: list[tuple[DapClient, Conversation]] = []

    @property
    def engine(self) -> CheckedEngine:
        """The engine, for assertions about what it knows."""
        assert isinstance(self.driver.engine, CheckedEngine)
        return self.driver.engine

    async def client(self, name: str = "client") -> DapClient:
        """Connect a client whose whole conversation is checked."""
        conversation = Conversation(name)
        client = await DapClient.connect("127.0.0.1", self.port, tap=conversation.tap)
        self._clients.append((client, conversation))
        return client

    def known(self, ports: Iterable[int], *, ready: bool = True) -> None:
        """Tell the engine of ranks 0, 1, … on these ports."""
        for rank, port in enumerate(ports):
            endpoint = Endpoint("127.0.0.1", port, ready=ready)
            self.driver.feed(inputs.RankKnown(("job", rank), endpoint))

    async def close(self) -> None:
        """End as SIGTERM does, and check the conversations."""
        self.driver.feed(inputs.Shutdown("the test is over"))
        with anyio.move_on_after(RELEASE_TIMEOUT_S):
            await self.driver.no_links()  # ranks that we hang up on too early are lost
        for client, _ in self._clients:
            await client.close()
        await self.driver.close()
        for _, conversation in self._clients:
            conversation.finish(expect_all_answered=False)


@asynccontextmanager
async def session(
    ports: Sequence[int] = (), *, settings: Settings | None = None, ready: bool = True
) -> AsyncIterator[Session]:
    """Serve ranks that listen on `ports` until the block is left."""
    settings = replace(settings or Settings(), key=new_token())
    driver = Driver(CheckedEngine(settings))
    server, port = await listen(driver, "127.0.0.1", 0)
    running = Session(driver, port)
    running.known(ports, ready=ready)
    try:
        yield running
    finally:
        server.close()
        await running.close()
        await asyncio.sleep(0)
