"""How the server ends: what it would still tell then must not hold it up."""

from __future__ import annotations

import io
import logging

import pytest
from lsprotocol import types
from pygls.io_ import StdoutWriter

from dap_mux.lsp.features import make_server


def test_an_editor_that_is_gone_is_not_told_so(caplog: pytest.LogCaptureFixture) -> None:
    """pygls tells the editor of what goes wrong; where telling does, that would never end."""
    server = make_server(lambda _: pytest.fail("nobody is to be joined"))
    writer = StdoutWriter(io.BytesIO())
    writer.close()  # type: ignore[no-untyped-call]
    server.protocol.set_writer(writer)
    with caplog.at_level(logging.ERROR):
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, "a rank moved"))
    assert [one.getMessage() for one in caplog.records] == ["Error sending data"]


def test_what_an_editor_says_behind_its_goodbye_is_no_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The answer to a question of ours may be on its way; whoever shows warnings shows errors."""
    server = make_server(lambda _: pytest.fail("nobody is to be joined"))
    server.protocol._shutdown = True  # as `shutdown` does
    late = types.InlayHintRefreshResponse(id=1)
    with caplog.at_level(logging.WARNING):
        server.protocol.handle_message(late)  # type: ignore[arg-type]  # lsprotocol has an id of None
    assert caplog.records == []
