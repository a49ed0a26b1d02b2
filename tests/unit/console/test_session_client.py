"""What a console knows of its ranks, against a scripted session."""

from __future__ import annotations

from typing import Any

from dap_mux.client import DapClient
from dap_mux.frontends.console.session_client import SessionClient
from tests.support.clients.scripted_server import ScriptedServer, list_row

Json = dict[str, Any]


async def test_an_answer_does_not_undo_what_is_told_behind_it() -> None:
    """The task that has asked runs on only when both have been heard."""
    server = ScriptedServer()

    def answer_and_tell(request: Json) -> None:
        server.answer(request, body={"ranks": [list_row(0)]})
        server.event("ranks", changed=[list_row(0, "stopped"), list_row(1)], counts={})

    server.on_request = answer_and_tell
    async with server.listening() as port:
        client = await DapClient.connect("127.0.0.1", port)
        session = SessionClient(client, "127.0.0.1:5677")
        assert [one["state"] for one in await session.list_ranks()] == ["running"]
        told = {("job", 0): "stopped", ("job", 1): "running"}
        await client.wait_event("ranks")
        assert {id: one["state"] for id, one in session.ranks.rows.items()} == told
        await session.close()
