"""Requests that make no sense, and an editor that leaves without a goodbye: over real LSP."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any, Final

import pytest

from tests.support.processes.commands import LIMIT, User, user

__all__ = ["user"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
INVALID_PARAMS: Final = -32602
INVALID_REQUEST: Final = -32600
NOT_INITIALIZED: Final = -32002
WHOLE: Final = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
Json = dict[str, Any]


class Raw:
    """The server's standard streams; what is sent need not be LSP."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.unasked: list[Json] = []  # notifications that were read while waiting
        self._id = 0

    def send(self, message: Json) -> None:
        """Send one message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def ask(self, method: str, params: object) -> Json:
        """Send a request; return its response."""
        self._id += 1
        self.send({"id": self._id, "method": method, "params": params})
        while (message := await asyncio.wait_for(self._read(), LIMIT)).get("id") != self._id:
            self.unasked.append(message)
        return message

    async def _read(self) -> Json:
        assert self.process.stdout is not None
        length = 0
        while line := (await self.process.stdout.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        message: Json = json.loads(await self.process.stdout.readexactly(length))
        return message

    async def ends(self) -> int:
        """Its exit code."""
        return await asyncio.wait_for(self.process.wait(), LIMIT)


@asynccontextmanager
async def server(user: User, *, initialized: bool = True) -> AsyncIterator[Raw]:
    """A `dap-mux lsp`."""
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "dap_mux", "lsp"],
        env=user.environ,
        cwd=user.folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    raw = Raw(process)
    try:
        if initialized:
            params: Json = {"processId": None, "rootUri": user.folder.as_uri(), "capabilities": {}}
            assert "result" in await raw.ask("initialize", params)
            raw.send({"method": "initialized", "params": {}})
        yield raw
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


HERE: Final = {"textDocument": {"uri": "file:///x.py"}, "position": {"line": 1, "character": 0}}
MALFORMED: Final[dict[str, object]] = {
    "null": None,
    "empty": {},
    "a list": [],
    "a text": "here",
    "no position": {"textDocument": {"uri": "file:///x.py"}},
    "a word for a line": {**HERE, "position": {"line": "one", "character": 0}},
    "no document": {**HERE, "textDocument": 7},
}


async def test_malformed_parameters_are_an_error(user: User) -> None:
    async with server(user) as raw:
        for what, params in MALFORMED.items():
            error = (await raw.ask("textDocument/hover", params))["error"]
            assert error["code"] == INVALID_PARAMS, what
            assert "textDocument/hover" in error["message"], what
            assert (await raw.ask("textDocument/hover", HERE))["result"] is None, what
        assert raw.unasked == [], "the user is not told of the editor's mistake"


ABSENT: Final = ("file:///gone/train.py", "untitled:Untitled-1", "file:///a%00b")
ASKED: Final[dict[str, Json]] = {
    "textDocument/inlayHint": {"range": WHOLE},
    "textDocument/codeLens": {},
    "textDocument/hover": {"position": WHOLE["start"]},
    "textDocument/completion": {"position": WHOLE["start"]},
    "textDocument/codeAction": {"range": WHOLE, "context": {"diagnostics": []}},
}


async def test_a_document_that_is_neither_open_nor_on_disk(user: User) -> None:
    async with server(user) as raw:
        launch = (user.folder / ".vscode/launch.json").as_uri()
        for (method, more), uri in product(ASKED.items(), (*ABSENT, launch)):
            answer = await raw.ask(method, {"textDocument": {"uri": uri}, **more})
            assert "error" not in answer, (method, uri)
            assert not answer["result"], (method, uri)


async def test_requests_before_the_first_and_after_the_last(user: User) -> None:
    hover = {"textDocument": {"uri": "file:///x.py"}, "position": WHOLE["start"]}
    async with server(user, initialized=False) as raw:
        document = {"uri": "file:///x.py", "languageId": "python", "version": 1, "text": ""}
        raw.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        answer = await raw.ask("textDocument/hover", hover)
        assert answer["error"]["code"] == NOT_INITIALIZED
        await raw.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert (await raw.ask("textDocument/hover", hover))["result"] is None
        await raw.ask("shutdown", None)
        answer = await raw.ask("textDocument/hover", hover)
        assert answer["error"]["code"] == INVALID_REQUEST
        assert raw.unasked == []


@pytest.mark.parametrize(("says", "code"), [("exit", 1), ("shutdown exit", 0), ("", 0)])
async def test_how_it_ends(user: User, says: str, code: int) -> None:
    """The extension finds out by the end of the input whether its packages are installed."""
    async with server(user) as raw:
        if "shutdown" in says:
            assert (await raw.ask("shutdown", None))["result"] is None
        if says:
            raw.send({"method": "exit"})
        else:
            assert raw.process.stdin is not None
            raw.process.stdin.close()
        assert await raw.ends() == code
