"""Tokens and the files they are in: random, private, and never quoted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dap_mux.pure.errors import Refused, UsageError
from dap_mux.system.user_files import new_token, read_token, token_of

SHORT = "hunter2-hunter2-hunter2"


def test_a_token_is_32_random_bytes(tmp_path: Path) -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {43}, "32 bytes in base64"


def test_a_missing_token_file_is_made_for_us_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    before = os.umask(0)
    try:
        token = token_of(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == token + "\n"
    assert token_of(path) == read_token(path) == token, "and is kept"


def test_two_sessions_that_make_it_at_once_have_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second looks while the first one writes."""
    path = tmp_path / "token"
    second: list[str] = []
    fdopen = os.fdopen

    def meanwhile(*words: Any, **more: Any) -> Any:
        if not second:
            second.append("")
            second[0] = token_of(path)
        return fdopen(*words, **more)

    monkeypatch.setattr(os, "fdopen", meanwhile)
    assert token_of(path) == second[0] == read_token(path)
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*words: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "token"
    assert token_of(path) == read_token(path)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o644, 0o602, 0o777])
def test_a_token_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    token = token_of(path)
    path.chmod(mode)
    with pytest.raises(Refused, match="other users can read") as caught:
        read_token(path)
    assert token not in str(caught.value)


def test_a_token_that_others_may_replace_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    token_of(folder / "token")
    folder.chmod(0o777)
    with pytest.raises(Refused, match="other users can write"):
        read_token(folder / "token")
    folder.chmod(0o1777)
    read_token(folder / "token")


def test_another_users_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    token_of(path)
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    if uid != 0:
        with pytest.raises(Refused, match="another user"):
            read_token(path)
        return
    path.chmod(0o440)  # as Kubernetes mounts a secret: root's, for our group
    read_token(path)
    for mode in (0o444, 0o460):
        path.chmod(mode)
        with pytest.raises(Refused, match="other users can read"):
            read_token(path)


@pytest.mark.parametrize("text", ["", SHORT, SHORT + " " + SHORT, "é" * 50, "x" * 2000])
def test_a_weak_token_is_refused_and_never_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    with pytest.raises(Refused, match="holds no valid token") as caught:
        read_token(path)
    assert not text or text not in str(caught.value)


def test_a_token_file_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_token(tmp_path / "none")
    with pytest.raises(UsageError, match="cannot be created"):
        token_of(tmp_path / "no folder" / "token")
