"""Clients that ask for nonsense: each request is answered all the same, and nobody else is hurt."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random
from typing import Any, Final

from dap_mux.client import DapClient, RequestFailed

HOST: Final = "127.0.0.1"
LIMIT: Final = 30.0  # s; not a wait
REQUESTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("stackTrace", {"threadId": "x"}),
    ("stackTrace", {"threadId": 2**31 - 1}),
    ("variables", {"variablesReference": 999_999_999}),
    ("scopes", {}),
    ("setBreakpoints", {"source": 3}),
    ("setBreakpoints", {"source": {"path": "/nowhere.py"}, "breakpoints": [{"line": -1}]}),
    ("restartFrame", {"frameId": 1}),
    ("loadedSources", {}),
    ("continue", {"threadId": 2**40}),
    ("continue", {"threadId": None}),
    ("evaluate", {"expression": 5}),
    ("evaluate", {"expression": "ranks(", "context": "repl"}),
    ("cast", {"ranks": "0-", "command": 1}),
    ("cast", {"ranks": "3000", "command": "p 1"}),
    ("compare", {}),
    ("list", {"ranks": "((("}),
    ("view", {"value": "sideways"}),
    ("attach", {"pathMappings": 3}),
    ("noSuchRequest", {"x": [[]]}),
)
BABBLE: Final = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"Content-Length: 99999999999\r\n\r\n",
    b"Content-Length: 4\r\n\r\n[1,2",
    b"\x00" * 1000,
    b"Content-Length: 20\r\n\r\n",
)


async def ask_badly(port: int, chance: Random) -> int:
    """Ask for several things that there are not; return how many were asked for and answered."""
    client = await DapClient.connect(HOST, port)
    await client.request("initialize", {"adapterID": "x", "clientID": "bad"}, timeout=LIMIT)
    chosen = chance.choices(REQUESTS, k=chance.randint(1, 12))
    asked = [client.send(command, arguments) for command, arguments in chosen]
    await asyncio.wait(asked, timeout=LIMIT)
    for question, answer in zip(chosen, asked, strict=True):
        assert answer.done(), f"not answered: {question}"
        failure = answer.exception()
        assert failure is None or isinstance(failure, RequestFailed), (question, failure)
    await client.close()
    return len(chosen)


async def babble(port: int, chance: Random) -> None:
    """Send what is no message, and wait to be hung up on, or hang up."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(chance.choice(BABBLE))
    with contextlib.suppress(OSError):
        await writer.drain()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(), chance.uniform(0.01, 0.3))
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
