"""Following the code of one `evaluate`, from an editor's socket to a rank's and back.

A file counts if any of its code runs on the way, once what is imported on demand is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, TypeVar

import pytest

import dap_mux
from dap_mux.shell.links import RankLink
from dap_mux.shell.listeners import ClientConnection
from tests.support.fake_rank.program import FIRST
from tests.support.fake_rank.rank import FakeRank
from tests.support.fake_rank.server import serving
from tests.support.session import session

PACKAGE: Final = Path(dap_mux.__file__).parent
WALK: Final = 16  # files
T = TypeVar("T")


class Walk:
    """The files of ours in which code runs, in this order."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}

    def followed(self, receive: Callable[[T, bytes], None]) -> Callable[[T, bytes], None]:
        """Make a socket's callback note what it leads to."""

        def noted(connection: T, data: bytes) -> None:
            sys.setprofile(self._called)
            try:
                receive(connection, data)
            finally:
                sys.setprofile(None)

        return noted

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents:
            self.files[path.relative_to(PACKAGE).as_posix()] = None


async def test_one_evaluate_leads_through_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    walk, ranks = Walk(), [FakeRank(0), FakeRank(1)]
    async with (
        serving(ranks[0]) as first,
        serving(ranks[1]) as second,
        session([first, second]) as running,
    ):
        client = await running.client()
        await client.handshake({}, breakpoints={ranks[0].program.path: [FIRST]})
        row = (await client.wait_event("stopped"))["threadId"]
        stack = await client.request("stackTrace", {"threadId": row})
        frame = stack["stackFrames"][0]["id"]
        arguments = {"expression": "step", "frameId": frame, "context": "repl"}
        await client.request("evaluate", arguments)
        for kind in (ClientConnection, RankLink):
            monkeypatch.setattr(kind, "data_received", walk.followed(kind.data_received))
        assert (await client.request("evaluate", arguments))["result"] in ("0", "1")
        monkeypatch.undo()
    assert {"shell/links.py", "engine/values/inspect.py"} < walk.files.keys()
    assert len(walk.files) <= WALK, [*walk.files]
