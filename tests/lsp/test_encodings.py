"""Which files are not encoded in UTF-8, and where that shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from dap_mux.frontends.lsp.launch_json import encoding_problem

TEXT = "{\n  // für uns\n}\n"


@pytest.mark.parametrize(
    ("encoding", "line", "says"),
    [
        ("utf-16", 0, "launch.json is encoded in UTF-16, so"),
        ("utf-16-le", 0, "launch.json is encoded in UTF-16, so"),
        ("utf-16-be", 0, "launch.json is encoded in UTF-16, so"),
        ("latin-1", 1, "launch.json is not encoded in UTF-8 (line 2), so"),
        ("cp1252", 1, "launch.json is not encoded in UTF-8 (line 2), so"),
    ],
)
def test_another_encoding(tmp_path: Path, encoding: str, line: int, says: str) -> None:
    path = tmp_path / "launch.json"
    path.write_text(TEXT, encoding)
    found = encoding_problem(str(path))
    assert found is not None
    assert found.line == line
    assert found.message.startswith(says)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_utf_8(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "launch.json"
    path.write_text(TEXT, encoding)
    assert encoding_problem(str(path)) is None


def test_no_file(tmp_path: Path) -> None:
    assert encoding_problem(str(tmp_path / "none.json")) is None
    assert encoding_problem("a\0b") is None
