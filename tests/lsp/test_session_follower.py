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
from dap_mux.frontends.lsp.session_follower import SessionFollower, SessionWatch, Wanted
from dap_mux.pure.protocol.messages import Framer, encode_frame
from dap_mux.system.session_files import SessionFile
from tests.support.processes.commands import LIMIT
from tests.support.processes.waiting import until

PROGRAM = "/job/train.py"
Json = dict[str, Any]


def row(line: int | None) -> Json:
    """What `list` and the event `ranks` say of rank 0: it stands at a line, or runs."""
    state, reason = ("running", None) if line is None else ("stopped", "step")
    where = {"path": line and PROGRAM, "line": line, "host": "h", "pid": 1, "threadId": 1}
    return {"rank": 0, "group": "job", "worker": None, "state": state, "reason": reason, **where}


class Peer:
    """A session of one rank that runs; right behind its list it stops at line 7."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._seq = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        framer = Framer()
        while data := await reader.read(4096):
            for body in framer.feed(data):
                request = json.loads(body)
                said = self._answer(request, {"breakpoints": []})
                if request["command"] == "list":
                    self.asked.set()
                    await self.may_answer.wait()
                    news = {"changed": [row(7)]}
                    said = self._answer(request, {"ranks": [row(None)]})
                    said += self._frame({"type": "event", "event": "ranks", "body": news})
                writer.write(said)  # in one piece
        writer.close()

    def _answer(self, request: Json, body: Json) -> bytes:
        same = {"request_seq": request["seq"], "command": request["command"]}
        return self._frame({"type": "response", "success": True, "body": body, **same})

    def _frame(self, message: Json) -> bytes:
        self._seq += 1
        return encode_frame(json.dumps({"seq": self._seq, **message}).encode())


class Late(Peer):
    """Too busy to answer when it is asked for breakpoints first."""

    def __init__(self) -> None:
        super().__init__()
        self._times = 0

    def _answer(self, request: Json, body: Json) -> bytes:
        if request["command"] != "breakpoints":
            return super()._answer(request, body)
        self._times += 1
        known = {"breakpoints": [{"id": 1}]}
        return super()._answer(request, known) if self._times > 1 else b""


class Odd(Peer):
    """Once, of a session, something that no session says."""

    def __init__(self, command: str, said: bytes) -> None:
        super().__init__()
        self._command, self._said = command, said

    @property
    def has_said_it(self) -> bool:
        return not self._said

    def _answer(self, request: Json, body: Json) -> bytes:
        if request["command"] != self._command or not self._said:
            return super()._answer(request, body)
        same = {"request_seq": request["seq"], "command": request["command"]}
        response = {"seq": 1, "type": "response", "success": True, **same}
        said, self._said = self._said, b""
        return encode_frame(json.dumps(response).encode()[:-1] + said)


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
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@asynccontextmanager
async def join(session: SessionFile) -> AsyncIterator[DapClient]:
    client = await DapClient.connect(session.host, session.port)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def follower(tmp_path: Path) -> AsyncIterator[SessionFollower]:
    """It follows whom `prefer` says."""
    made = SessionFollower(join, lambda: None)
    made.watch = SessionWatch(folder=tmp_path / "dap-mux")
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
    slow.may_answer.clear()
    async with serving(slow) as first, serving(Peer()) as second:
        await follower.prefer(Wanted(first))
        await asyncio.wait_for(slow.asked.wait(), LIMIT)
        await follower.prefer(Wanted(second))
        slow.may_answer.set()
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
