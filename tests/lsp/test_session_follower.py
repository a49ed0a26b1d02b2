"""How the language server joins a session: what moves or is preferred meanwhile is not lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.frontends.lsp.session_follower import SessionFollower, Wanted
from dap_mux.pure.protocol.messages import encode_frame
from dap_mux.system.session_files import SessionFile
from tests.lsp.test_rank_state import row
from tests.support.clients.scripted_server import ScriptedServer
from tests.support.processes.commands import LIMIT
from tests.support.processes.waiting import until

PROGRAM = "/job/train.py"
Json = dict[str, Any]


class Peer(ScriptedServer):
    """A session of one rank that runs; right behind its list it stops at line 7."""

    def __init__(self) -> None:
        super().__init__()
        self.on_request = self.tell

    def tell(self, request: Json) -> None:
        if request["command"] == "list":
            self.answer(request, body={"ranks": [row(0)]})
            self.event("ranks", changed=[row(0, 7)])  # in one piece
        else:
            self.answer(request, body={"breakpoints": []})


class Late(Peer):
    """Too busy to answer when it is asked for breakpoints first."""

    def tell(self, request: Json) -> None:
        if request["command"] != "breakpoints":
            super().tell(request)
        elif [one["command"] for one in self.received].count("breakpoints") > 1:
            self.answer(request, body={"breakpoints": [{"id": 1}]})


class Odd(Peer):
    """Once, of a session, something that no session says."""

    def __init__(self, command: str, said: bytes) -> None:
        super().__init__()
        self._command, self._said = command, said

    @property
    def has_said_it(self) -> bool:
        return not self._said

    def tell(self, request: Json) -> None:
        if request["command"] != self._command or not self._said:
            super().tell(request)
            return
        same = {"request_seq": request["seq"], "command": request["command"]}
        response = {"seq": 1, "type": "response", "success": True, **same}
        said, self._said = self._said, b""
        self.raw(encode_frame(json.dumps(response).encode()[:-1] + said))


ODD: Final = {
    "a list without ranks": ("list", b', "body": {}}'),
    "ranks that are none": ("list", b', "body": {"ranks": [7, null]}}'),
    "a body that is none": ("list", b', "body": 7}'),
    "JSON that is cut off": ("list", b', "body": {"ranks'),
    "no JSON object": ("list", b"}}}"),
    "no breakpoints": ("breakpoints", b', "body": {}}'),
}


@asynccontextmanager
async def serving(peer: Peer) -> AsyncIterator[str]:
    """Yield its address."""
    async with peer.listening() as port:
        yield f"127.0.0.1:{port}"


@asynccontextmanager
async def join(session: SessionFile) -> AsyncIterator[DapClient]:
    client = await DapClient.connect(session.host, session.port)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def follower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SessionFollower]:
    """It follows whom `prefer` says."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = SessionFollower(join, lambda: None)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.wait([running])


async def test_what_moves_right_behind_the_list_is_not_undone_by_it(
    follower: SessionFollower,
) -> None:
    async with serving(Peer()) as address:
        await follower.prefer(Wanted(address))
        await stands(follower)


async def stands(follower: SessionFollower) -> None:
    """It knows where the rank of the peer stands."""

    def lines() -> list[int]:
        return [one.line for one in follower.ranks.stopped_in(PROGRAM)]

    await until(lambda: lines() == [7], within=LIMIT, what="the rank stands")


@pytest.mark.parametrize("what", ODD)
async def test_an_odd_session_does_not_keep_it_from_the_next(
    follower: SessionFollower, what: str
) -> None:
    peer = Odd(*ODD[what])
    async with serving(peer) as odd, serving(Peer()) as other:
        await follower.prefer(Wanted(odd))
        await until(lambda: peer.has_said_it, within=LIMIT, what="it is said")
        await follower.prefer(Wanted(other))
        await stands(follower)


async def test_another_one_is_preferred_while_one_is_being_joined(
    follower: SessionFollower,
) -> None:
    slow = Peer()
    slow.on_request = lambda request: None
    async with serving(slow) as first, serving(Peer()) as second:
        await follower.prefer(Wanted(first))
        await until(lambda: slow.received, within=LIMIT, what="it is asked for ranks")
        await follower.prefer(Wanted(second))
        slow.tell(slow.received[0])
        await until(lambda: follower.session, within=LIMIT, what="in a session")
        assert follower.session
        assert follower.session.address == second


async def test_breakpoints_that_a_session_owes_are_asked_for_again(
    follower: SessionFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dap_mux.frontends.lsp.session_follower.REQUEST_TIMEOUT_S", 0.5)
    async with serving(Late()) as address:
        await follower.prefer(Wanted(address))
        await until(lambda: follower.breakpoints, within=LIMIT, what="breakpoints")
