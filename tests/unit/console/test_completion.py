"""What is offered at the cursor, and the history that only its user can read."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.history import FileHistory

from dap_mux.console.completion import candidates
from dap_mux.console.picture import Picture
from dap_mux.console.terminal import history


@pytest.fixture
def picture() -> Picture:
    """Four ranks of a mesh."""
    keys = "worker host pid endpoint reason thread function module path line threadId exitCode"
    nothing: dict[str, Any] = dict.fromkeys(keys.split())
    known = Picture()
    for rank in range(4):
        place = {"dp": rank // 2, "tp": rank % 2}
        row = {"rank": rank, "group": "job", "state": "stopped", "coords": place}
        known.take([nothing | row])
    return known


@pytest.mark.parametrize(
    ("text", "start", "some"),
    [
        ("", 0, {"list ", "attach ", "cast ", "quit", "help"}),
        ("at", 0, {"attach "}),
        ("scope c", 6, {"class"}),
        ("list cl", 5, {"classes"}),
        ("list st", 5, {"stopped"}),
        ("cast ranks(d", 11, {"dp="}),
        ("cast ranks(dp=", 14, {"0", "1"}),
        ("a @s", 2, {"@slow"}),
    ],
)
def test_what_is_offered(picture: Picture, text: str, start: int, some: set[str]) -> None:
    at, words = candidates(text, picture, [("slow", "3")])
    assert at == start
    assert some <= set(words)


@pytest.mark.parametrize("text", ["nonsense 3", "scope x", "cast )", "\x00", "detach x", "% "])
def test_nothing_is_offered_where_nothing_fits(picture: Picture, text: str) -> None:
    assert candidates(text, picture)[1] == []


def test_behind_a_percent_sign(picture: Picture) -> None:
    assert candidates("%li", picture) == (1, ["list "])


def test_files_of_a_breakpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "layers.py").touch()
    (tmp_path / "main.py").touch()
    (tmp_path / "map.txt").touch()
    assert candidates("break m", Picture()) == (6, ["main.py:", "model/"])
    assert candidates("b model/l", Picture()) == (2, ["model/layers.py:"])
    assert candidates("b no/where", Picture()) == (2, [])


def test_the_history_is_its_users_alone(tmp_path: Path) -> None:
    kept = history({"XDG_STATE_HOME": str(tmp_path / "state")}, tmp_path)
    assert isinstance(kept, FileHistory)
    path = tmp_path / "state/dap-mux/history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    nowhere = history({"XDG_STATE_HOME": str(tmp_path / "file")}, tmp_path)
    assert not isinstance(nowhere, FileHistory), "a console without a history is still one"
