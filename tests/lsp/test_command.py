"""`dap-mux lsp` as a command: which session it finds, and how it ends."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.io_ import StdoutWriter

from dap_mux.frontends.lsp.features import make_server
from dap_mux.frontends.lsp.session_follower import ONLY, Wanted
from dap_mux.system.session_files import SessionFile


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's session files."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "dap-mux"


def test_of_several_the_newest(folder: Path) -> None:
    SessionFile("127.0.0.1", 1).write(folder)
    SessionFile("127.0.0.1", 2, pid=1).write(folder)
    first = Wanted().look()
    assert first is not None
    assert first.port == 1, "process 1 is the older one"


def test_the_only_one_is_none_of_several(folder: Path) -> None:
    wanted = Wanted(ONLY)
    assert wanted.look() is None
    first = SessionFile("127.0.0.1", 1)
    first.write(folder)
    found = wanted.look()
    assert found is not None
    assert found.port == 1
    SessionFile("127.0.0.1", 2, pid=1).write(folder)
    assert wanted.look() is None


def test_a_token_is_for_a_session_without_a_file_of_its_own(folder: Path) -> None:
    SessionFile("127.0.0.1", 1, token="its own").write(folder)
    for address, token in (("127.0.0.1:1", "its own"), ("node1:1", "typed")):
        found = Wanted(address, "typed").look()
        assert found is not None
        assert found.token == token


# How the server ends: what it would still tell then must not hold it up.


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
