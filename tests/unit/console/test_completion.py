"""What is offered at the cursor, and the history that only its user can read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory

from dap_mux.frontends.console.session_client import RankTracker
from dap_mux.frontends.console.terminal import candidates, history
from tests.support.clients.scripted_server import list_row


@pytest.fixture
def tracker() -> RankTracker:
    """Four ranks of a mesh."""
    known = RankTracker()
    for rank in range(4):
        place = {"dp": rank // 2, "tp": rank % 2}
        known.update([list_row(rank, "stopped", coords=place)])
    return known


@pytest.mark.parametrize(
    ("text", "start", "some"),
    [
        ("", 0, {"list ", "attach ", "cast ", "quit", "help "}),
        ("at", 0, {"attach "}),
        ("scope c", 6, {"class"}),
        ("list cl", 5, {"classes"}),
        ("list st", 5, {"stopped"}),
        ("cast ranks(d", 11, {"dp="}),
        ("cast ranks(dp=", 14, {"0", "1"}),
        ("a @s", 2, {"@slow"}),
    ],
)
def test_what_is_offered(tracker: RankTracker, text: str, start: int, some: set[str]) -> None:
    at, words = candidates(text, tracker, [("slow", "3")])
    assert at == start
    assert some <= set(words)


@pytest.mark.parametrize("text", ["nonsense 3", "scope x", "cast )", "\x00", "detach x", "% "])
def test_nothing_is_offered_where_nothing_fits(tracker: RankTracker, text: str) -> None:
    assert candidates(text, tracker)[1] == []


def test_behind_a_percent_sign(tracker: RankTracker) -> None:
    assert candidates("%li", tracker) == (1, ["list "])


def test_files_of_a_breakpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "layers.py").touch()
    (tmp_path / "main.py").touch()
    (tmp_path / "map.txt").touch()
    assert candidates("break m", RankTracker()) == (6, ["main.py:", "model/"])
    assert candidates("b model/l", RankTracker()) == (2, ["model/layers.py:"])
    assert candidates("b no/where", RankTracker()) == (2, [])


def test_the_history_is_its_users_alone(tmp_path: Path) -> None:
    kept = history({"XDG_STATE_HOME": str(tmp_path / "state")}, tmp_path)
    assert isinstance(kept, FileHistory)
    path = tmp_path / "state/dap-mux/history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    nowhere = history({"XDG_STATE_HOME": str(tmp_path / "file")}, tmp_path)
    assert not isinstance(nowhere, FileHistory), "a console without a history is still one"
