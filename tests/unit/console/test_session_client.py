"""What a console knows of its ranks, against a scripted session."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dap_mux.client import DapClient
from dap_mux.frontends.console.session_client import SessionClient
from dap_mux.pure.protocol.messages import Framer, encode_frame

KEYS = "worker coords host pid endpoint reason thread function module path line threadId exitCode"


def row(rank: int, state: str) -> dict[str, Any]:
    """One row of `list`."""
    return {**dict.fromkeys(KEYS.split()), "rank": rank, "group": "job", "state": state}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer `list`, and tell in the same breath that rank 0 has stopped and rank 1 has come."""
    framer = Framer()
    while data := await reader.read(4096):
        for body in framer.feed(data):
            request = json.loads(body)
            same = {"request_seq": request["seq"], "command": request["command"]}
            answer = {"type": "response", "seq": 1, "success": True, **same}
            event = {"type": "event", "seq": 2, "event": "ranks"}
            changed = {"changed": [row(0, "stopped"), row(1, "running")], "counts": {}}
            said = [{**answer, "body": {"ranks": [row(0, "running")]}}, {**event, "body": changed}]
            writer.write(b"".join(encode_frame(json.dumps(each).encode()) for each in said))
    writer.close()


async def test_an_answer_does_not_undo_what_is_told_behind_it() -> None:
    """The task that has asked runs on only when both have been heard."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = await DapClient.connect("127.0.0.1", server.sockets[0].getsockname()[1])
    session = SessionClient(client, "127.0.0.1:5677")
    assert [one["state"] for one in await session.list_ranks()] == ["running"]
    told = {("job", 0): "stopped", ("job", 1): "running"}
    await client.wait_event("ranks")
    assert {id: one["state"] for id, one in session.ranks.rows.items()} == told
    await session.close()
    server.close()
