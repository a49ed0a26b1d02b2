"""`dap-mux diverge` of traces: what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dap_mux.frontends.cli.entry import main


def write(folder: Path, *values: str) -> Path:
    """A trace whose ranks have these values of `w` after a step with equal gradients."""
    folder.mkdir()
    for rank, value in enumerate(values):
        lines: list[dict[str, Any]] = [
            {"kind": "head", "rank": rank},
            {
                "kind": "step", "number": 0, "optimizer": "SGD", "place": "train.py:9 train",
                "before": {"w": "w0"}, "gradients": {"w": "g"}, "after": {"w": value},
            },
        ]  # fmt: skip
        text = "".join(json.dumps(each) + "\n" for each in lines)
        (folder / f"rank-{rank}.jsonl").write_text(text, "utf-8")
    return folder


def test_a_difference_is_shown_and_is_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = write(tmp_path / "a", "w1", "other"), write(tmp_path / "b", "w1", "w1")
    assert main(["diverge", str(a)]) == 10
    assert capsys.readouterr().out.splitlines() == [
        "step 0, rank 1: w differs after a step, though its gradient was equal",
        "  at: train.py:9 train",
        "  try: run it again with --locate, which names the line",
    ]
    assert main(["diverge", str(a), str(b), "--json"]) == 10
    body = json.loads(capsys.readouterr().out)
    assert (body["ranks"], body["place"], body["other"]) == ([1], *2 * ["train.py:9 train"])


def test_equality_is_said_with_what_was_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = write(tmp_path / "a", "w1", "w1"), write(tmp_path / "b", "w1")
    assert main(["diverge", str(a)]) == 0
    assert main(["diverge", str(b)]) == 0
    assert main(["diverge", str(a), str(b)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "no difference; parameters compared: 1, steps: 1",
        "nothing to compare; no parameter is kept equal in two ranks",
        "no difference; ranks compared: 1",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rank-0.jsonl", b"", "no trace: its first line is none that --comm-file writes"),
        ("rank-0.jsonl", b"\xff\xfe\n\n", "rank-0.jsonl:1: no line of a trace"),
        ("rank-0.jsonl", b"[" * 100_000 + b"\n\n", "rank-0.jsonl:1: no line of a trace"),
        ("rank-x.jsonl", b"", "the name is not that of a rank"),
        ("other", b"", "no rank has imported torch.distributed"),
    ],
)
def test_what_is_no_trace_is_refused(
    name: str, content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert main(["diverge", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err


def test_a_tolerance_needs_two_runs_with_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = write(tmp_path / "a", "w1", "w1"), write(tmp_path / "b", "w1")
    assert main(["diverge", str(a), str(b), "--tolerance", "0.1"]) == 1
    assert "no parameter in common whose values are recorded" in capsys.readouterr().err
    assert main(["diverge", str(a), "--tolerance", "0.1"]) == 2
    assert "--tolerance 0.1: only for two runs" in capsys.readouterr().err
    assert main(["diverge", str(a), str(b), "--tolerance", "7"]) == 2
    assert "--tolerance 7: must be a number between 0 and 1" in capsys.readouterr().err
    assert main(["diverge", str(a), str(b), "--tolerance", "c"]) == 1
    assert "c: no folder that `run --comm-file` has written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("diverge", "diverge needs a trace or a launcher behind --"),
        ("diverge a b c", "diverge compares two runs, not 3"),
        ("diverge a --step train.py:9", "--step train.py:9: must be FILE:LINE, with a launcher"),
        ("diverge --step train.py -- x", "--step train.py: must be FILE:LINE, with a launcher"),
        ("diverge a --equal x", "--equal x: only for the ranks of a launcher behind --"),
        ("diverge a b -- torchrun", "diverge compares two runs, not 3"),
        ("run --comm-file a -- torchrun", "--comm-file a: needs --comm hash or operations"),
    ],
)
def test_usage_errors_say_what_helps(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err
