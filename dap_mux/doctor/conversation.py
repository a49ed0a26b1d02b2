"""The one conversation that may be had with a debugpy: begun, understood and ended properly.

It goes as far as `attach`, for an adapter that is left before closes its port for ever, and no
further: a rank that waits for a client is let go by `configurationDone` (both measured). debugpy
greets whoever connects; a dap-mux session waits to be spoken to.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from dap_mux.client import ConnectionLost, DapClient, RequestFailed
from dap_mux.errors import PeerFault

CONNECT: Final = 5.0  # s
GREETING: Final = 2.0  # s for debugpy's first words; who is late is spoken to first
READY: Final = 3.0  # s for it to say that it has met its debuggee (K3); not said while it is taken
ANSWER: Final = 10.0  # s
REST: Final = 0.3  # s before anybody connects again (K4)
TAKEN: Final = "already being debugged"  # debugpy's words
# What reading a stranger's words as DAP may raise.
NONSENSE: Final = (PeerFault, AttributeError, LookupError, TypeError, ValueError)
_ABOUT_US: Final = {"clientID": "dap-mux doctor", "adapterID": "debugpy", "pathFormat": "path"}
Outcome: TypeAlias = Literal[
    "refused",
    "unreachable",
    "hung up",
    "wedged",
    "stranger",
    "session",
    "taken",
    "refuses",
    "fine",
]


@dataclass(frozen=True)
class Talk:
    """How it went. `words`: what was said or why not; `version`: debugpy's, "" if not told."""

    outcome: Outcome
    words: str = ""
    version: str = ""


async def talk(host: str, port: int) -> Talk:
    """Find out whether a debugpy answers at an address, and do it no harm."""
    try:
        client = await asyncio.wait_for(DapClient.connect(host, port), CONNECT)
    except ConnectionRefusedError:
        return Talk("refused")
    except (OSError, asyncio.TimeoutError) as error:
        return Talk("unreachable", str(error) or f"no answer within {CONNECT:g} s")
    try:
        return await _speak(client)
    except NONSENSE as error:
        return Talk("stranger", str(error))
    except ConnectionLost as error:
        return Talk("hung up", str(error))
    finally:
        with suppress(ConnectionLost, OSError, *NONSENSE):
            await client.close()
        await asyncio.sleep(REST)


async def _speak(client: DapClient) -> Talk:
    with suppress(TimeoutError):
        await client.wait_for(lambda: bool(client.events), timeout=GREETING, what="greeting")
    version = _version(client.events)
    try:
        await client.request("initialize", _ABOUT_US, timeout=ANSWER)
        if client.events:
            return Talk(*await _attach(client), version)
        await client.disconnect(timeout=ANSWER)
    except TimeoutError as error:
        return Talk("wedged", str(error), version)
    return Talk("session")


async def _attach(client: DapClient) -> tuple[Outcome, str]:
    with suppress(TimeoutError):
        await client.wait_event("debugpySockets", _has_met, timeout=READY)
    attached = client.send("attach", {"subProcess": False})
    await client.wait_for(
        lambda: attached.done() or any(one["event"] == "initialized" for one in client.events),
        timeout=ANSWER,
        what="answer to attach",
    )
    refusal = str(attached.result().get("message")) if attached.done() else ""
    with suppress(RequestFailed):
        await client.disconnect(timeout=ANSWER)
    if not refusal:
        return "fine", ""
    return ("taken" if TAKEN in refusal else "refuses"), refusal


def _has_met(body: dict[str, Any]) -> bool:
    return any(one.get("internal") for one in body.get("sockets") or [])


def _version(events: list[dict[str, Any]]) -> str:
    data = (event.get("body", {}).get("data") or {} for event in events)
    return next((str(one["packageVersion"]) for one in data if "packageVersion" in one), "")
