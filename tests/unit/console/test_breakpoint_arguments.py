"""What `break` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dap_mux.console.breakpoints import parse_location
from dap_mux.errors import UsageError

ROWS: list[dict[str, str | None]] = [
    {"path": "/src/train.py"},
    {"path": "/src/model/layers.py"},
    {"path": None},
]


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("train.py:41", ("/src/train.py", 41, "")),
        (
            "model/layers.py:7, ranks(0:4): x > 3, 4",
            ("/src/model/layers.py", 7, "ranks(0:4): x > 3, 4"),
        ),
        ("  train.py : 41 ,n == 1", ("/src/train.py", 41, "n == 1")),
        ("/else/where.py:3", ("/else/where.py", 3, "")),
    ],
)
def test_file_line_and_condition(spec: str, meant: tuple[str, int, str]) -> None:
    assert parse_location(spec, ROWS) == meant


def test_a_file_here_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert parse_location("train.py:1", ROWS)[0] == str(tmp_path / "train.py")


def test_a_file_that_no_rank_is_in_yet_lies_beside_one(tmp_path: Path) -> None:
    (tmp_path / "model.py").touch()
    rows = [{"path": str(tmp_path / "train.py")}, {"path": "/elsewhere/threading.py"}]
    assert parse_location("model.py:146", rows)[0] == str(tmp_path / "model.py")
    with pytest.raises(UsageError, match="give its full path"):
        parse_location("other.py:146", rows)


def test_the_only_file_need_not_be_named() -> None:
    assert parse_location("41", ROWS[:1]) == ("/src/train.py", 41, "")
    with pytest.raises(UsageError, match="which file"):
        parse_location("41", ROWS)


@pytest.mark.parametrize("spec", ["", "train.py", "train.py:x", ":", "train.py:41 x", "no.py:1"])
def test_anything_else_is_a_sentence(spec: str) -> None:
    with pytest.raises(UsageError):
        parse_location(spec, ROWS)
