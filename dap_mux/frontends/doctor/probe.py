"""Probes an endpoint with a DAP conversation that is harmless to debugpy.

It goes as far as `attach`, since an adapter whose client leaves earlier closes its port forever,
and no further: `configurationDone` would start a rank that waits for a client (both measured).
debugpy sends events to each new client; a dap-mux session has none before `attach`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from dap_mux.client import ConnectionLost, DapClient, RequestFailed
from dap_mux.pure.errors import PeerFault

CONNECT_TIMEOUT_S: Final = 5.0
GREETING_TIMEOUT_S: Final = 2.0  # for debugpy's first event
DEBUGGEE_TIMEOUT_S: Final = (
    3.0  # s for it to say that it has met its debuggee; not said while it is taken
)
REPLY_TIMEOUT_S: Final = 10.0  # s
REST_S: Final = 0.3  # s that its adapter needs before the next connection
TAKEN: Final = "already being debugged"  # debugpy's message
# Raised by decoding what is not DAP.
MALFORMED: Final = (PeerFault, AttributeError, LookupError, TypeError, ValueError)
# With `dapMux` a rank of ours needs no adapter for us, and says so (dap_mux/rank/own_port.py).
SERVED: Final = "dapMuxServed"
_ABOUT_US: Final = {
    "clientID": "dap-mux doctor",
    "adapterID": "debugpy",
    "pathFormat": "path",
    "dapMux": {},
}
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
class ProbeResult:
    """The result. `words`: a message or an error; `version`: debugpy's, "" if unknown."""

    outcome: Outcome
    words: str = ""
    version: str = ""


async def probe(host: str, port: int) -> ProbeResult:
    """Find out whether debugpy responds at an address, without harming it."""
    try:
        client = await asyncio.wait_for(DapClient.connect(host, port), CONNECT_TIMEOUT_S)
    except ConnectionRefusedError:
        return ProbeResult("refused")
    except (OSError, asyncio.TimeoutError) as error:
        return ProbeResult(
            "unreachable", str(error) or f"no response within {CONNECT_TIMEOUT_S:g} s"
        )
    try:
        return await _converse(client)
    except MALFORMED as error:
        return ProbeResult("stranger", str(error))
    except ConnectionLost as error:
        return ProbeResult("hung up", str(error))
    finally:
        with suppress(ConnectionLost, OSError, *MALFORMED):
            await client.close()
        await asyncio.sleep(REST_S)


async def _converse(client: DapClient) -> ProbeResult:
    try:
        await client.request("initialize", _ABOUT_US, timeout=REPLY_TIMEOUT_S)
    except TimeoutError as error:
        return ProbeResult("wedged", str(error), _version(client.events))
    except RequestFailed as refusal:
        return ProbeResult(*_refused(str(refusal)), _version(client.events))
    with suppress(TimeoutError):
        await client.wait_for(
            lambda: bool(client.events), timeout=GREETING_TIMEOUT_S, what="greeting"
        )
    try:
        if client.events:
            return ProbeResult(*await _attach(client), _version(client.events))
        await client.disconnect(timeout=REPLY_TIMEOUT_S)
    except TimeoutError as error:
        return ProbeResult("wedged", str(error), _version(client.events))
    return ProbeResult("session")


def _refused(message: str) -> tuple[Outcome, str]:
    return ("taken" if TAKEN in message else "refuses"), message


async def _attach(client: DapClient) -> tuple[Outcome, str]:
    if not any(one["event"] == SERVED for one in client.events):
        with suppress(TimeoutError):
            await client.wait_event("debugpySockets", _has_met, timeout=DEBUGGEE_TIMEOUT_S)
    attached = client.send("attach", {"subProcess": False})
    await client.wait_for(
        lambda: attached.done() or any(one["event"] == "initialized" for one in client.events),
        timeout=REPLY_TIMEOUT_S,
        what="answer to attach",
    )
    answer = attached.result() if attached.done() else {"success": True}
    refusal = "" if answer.get("success") else str(answer.get("message"))
    with suppress(RequestFailed):
        await client.disconnect(timeout=REPLY_TIMEOUT_S)
    return _refused(refusal) if refusal else ("fine", "")


def _has_met(body: dict[str, Any]) -> bool:
    return any(one.get("internal") for one in body.get("sockets") or [])


def _version(events: list[dict[str, Any]]) -> str:
    for body in (event.get("body") or {} for event in events):
        version = (body.get("data") or {}).get("packageVersion") or body.get("debugpy")
        if version:
            return str(version)
    return ""
