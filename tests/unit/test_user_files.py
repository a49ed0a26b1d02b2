"""Files that are none, and texts that no parser follows: a sentence and an exit code, at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from dap_mux.frontends.cli import main
from dap_mux.pure.errors import NothingToConnect
from dap_mux.system.session_files import find
from dap_mux.system.user_files import open_regular

DEEP = "[" * 100_000


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path.name)


SPECIAL: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a folder": os.mkdir,
    "a socket": _socket,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, where the command is typed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize(
    "words",
    [
        ["attach", ":1", "--token-file", "NAME"],
        ["attach", ":1", "--tls-cert", "NAME"],
        ["attach", "@NAME"],
        ["list", "127.0.0.1:5677", "--token-file", "NAME"],
        ["list", "127.0.0.1:5677", "--tls-ca", "NAME"],
    ],
    ids=" ".join,
)
def test_what_is_no_regular_file_is_refused_at_once(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], kind: str
) -> None:
    SPECIAL[kind](place / "special")
    assert main([word.replace("NAME", "special") for word in words]) == 2
    said = capsys.readouterr().err
    assert f"it is {kind}, not a regular file" in said
    assert "special" in said


def test_a_session_file_that_is_a_fifo(place: Path) -> None:
    os.mkfifo("1.json")
    with pytest.raises(NothingToConnect, match="not one of your session files"):
        find("1.json")


def test_a_regular_file_by_a_link(place: Path) -> None:
    (place / "file").write_text("text")
    (place / "link").symlink_to("file")
    with open_regular(place / "link") as file:
        assert file.read() == b"text"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ranks.json", DEEP, ["attach", "@ranks.json"]),
        ("ranks.json", '{"x":' * 100_000, ["attach", "@ranks.json"]),
        ("pyproject.toml", f"x = {DEEP}", ["config", "show"]),
        (".config/dap-mux/config.toml", f"x = {DEEP}", ["config", "show"]),
    ],
    ids=[
        "a list in a ranks file",
        "an object in a ranks file",
        "a project's file",
        "the user's file",
    ],
)
def test_a_file_that_is_nested_too_deeply(
    place: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, words: list[str]
) -> None:
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(text)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "nested too deeply" in said
    assert str(Path(name).name) in said
    assert "internal error" not in said


def test_a_session_file_that_is_nested_too_deeply(place: Path) -> None:
    (place / "1.json").write_text(DEEP)
    with pytest.raises(NothingToConnect, match="not one of your session files"):
        find("1.json")


def test_the_home_of_nobody(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", ":1", "--log-dir", "~nosuchuser/x"]) == 2
    assert "log_dir = '~nosuchuser/x' (flag --log-dir): ~nosuchuser is" in capsys.readouterr().err
