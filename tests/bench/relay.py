"""A relay between an editor and a session, which counts what they say to each other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from dap_mux.pure.protocol.messages import Framer

_CHUNK: Final = 1 << 16  # bytes
_LARGEST: Final = 1 << 30  # bytes of one message
Json = dict[str, Any]


@dataclass
class Relay:
    """Where the editor connects. `focuses`: stops that ask it to show their row."""

    port: int = 0
    commands: list[str] = field(default_factory=list)
    focuses: int = 0

    @property
    def requests(self) -> int:
        """How many the editor has made."""
        return len(self.commands)

    def forget(self) -> None:
        """Begin to count anew."""
        self.commands = []
        self.focuses = 0

    def asked(self, message: Json) -> None:
        """The editor has said this."""
        self.commands += [message["command"]] if message["type"] == "request" else []

    def told(self, message: Json) -> None:
        """The session has said this."""
        if message.get("event") == "stopped":
            self.focuses += not message["body"].get("preserveFocusHint")


@asynccontextmanager
async def relayed(session: int) -> AsyncIterator[Relay]:
    """Relay whoever connects to the session on this port."""
    relay = Relay()

    async def serve(editor: asyncio.StreamReader, to_editor: asyncio.StreamWriter) -> None:
        answers, to_session = await asyncio.open_connection("127.0.0.1", session)
        await asyncio.gather(
            _pass_on(editor, to_session, relay.asked),
            _pass_on(answers, to_editor, relay.told),
        )

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[Json], None]
) -> None:
    """Bytes first, and only then what they mean."""
    framer = Framer(max_body=_LARGEST)
    while data := await reader.read(_CHUNK):
        writer.write(data)
        for body in framer.feed(data):
            count(json.loads(body))
    writer.close()
