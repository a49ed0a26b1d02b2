"""What a rank writes of its own failure."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_mux.rank.black_box import (
    CRASH,
    END,
    MAX_RING_BYTES,
    PRINTED,
    RING_BYTES,
    printed,
    redacted,
)
from dap_mux.rank.environ import OUTPUT_BYTES

PROGRAM = """\
import os, sys, signal
from pathlib import Path
from dap_mux.rank.black_box import BlackBox
box = BlackBox(Path(sys.argv[1]))
print("first")

def step(batch, password):
{body}

try:
    step([1, 2], "hunter2")
except Exception as error:
    box.failed(error, error.__traceback__)
    raise
"""


def left(folder: Path, body: str, **environ: str) -> tuple[dict[str, Any], int]:
    """Run a program to its end; its record, and its exit code."""
    script, ready = folder / "job.py", folder / "rank.json"
    script.write_text(PROGRAM.format(body=f"    {body}"), "utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(ready)],
        check=False,
        capture_output=True,
        env={**os.environ, **environ},
    )
    end = ready.with_suffix(END)
    found: dict[str, Any] = json.loads(end.read_text("utf-8")) if end.exists() else {}
    return found, done.returncode


def test_an_exception_with_its_line_and_the_values_there(tmp_path: Path) -> None:
    found, _ = left(tmp_path, "return batch[7], password")
    assert (found["kind"], found["type"], found["message"]) == (
        "exception", "IndexError", "list index out of range",
    )  # fmt: skip
    assert (Path(found["file"]).name, found["line"], found["function"]) == ("job.py", 8, "step")
    assert found["values"] == {"batch": "list(1, 2)", "password": "[redacted: password]"}
    assert found["printed"] == "first\n"
    assert found["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ("sys.exit(4)", "sys.exit", 4),
        ("sys.exit('no such file')", "sys.exit", 1),
        ("os._exit(3)", "os._exit", 3),
        ("sys.exit()", "in peace", 0),
        ("os._exit(0)", "in peace", 0),
        ("return", "in peace", 0),
    ],
)
def test_an_exit_says_where(tmp_path: Path, body: str, kind: str, code: int) -> None:
    found, exit_code = left(tmp_path, body)
    assert (found["kind"], found["code"], exit_code) == (kind, code, code)
    assert found.get("line") == (8 if code else None)


def test_an_exit_for_an_exception_is_that_exception(tmp_path: Path) -> None:
    body = "try:\n        batch[9]\n    except IndexError:\n        sys.exit(5)"
    found, _ = left(tmp_path, body)
    assert (found["kind"], found["type"], found["code"]) == ("exception", "IndexError", 5)


def test_a_signal_leaves_pythons_frames_and_the_output(tmp_path: Path) -> None:
    found, code = left(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)")
    assert (found, code) == ({}, -signal.SIGSEGV)
    assert 'job.py", line 8 in step' in (tmp_path / f"rank{CRASH}").read_text("utf-8")
    assert printed((tmp_path / f"rank{PRINTED}").read_bytes()) == "first\n"


def test_the_output_outlives_sigkill_and_is_bounded(tmp_path: Path) -> None:
    body = "print('x' * 5000); print('last'); os.kill(os.getpid(), signal.SIGKILL)"
    _, code = left(tmp_path, body)
    text = printed((tmp_path / f"rank{PRINTED}").read_bytes())
    assert code == -signal.SIGKILL
    assert len(text) == RING_BYTES
    assert text.endswith("x\nlast\n")


@pytest.mark.parametrize(
    ("wanted", "size"),
    [
        ("9000", 9000),
        ("1", RING_BYTES),
        ("9" * 18, MAX_RING_BYTES),
        ("9" * 9999, RING_BYTES),
        ("all", RING_BYTES),
    ],
)
def test_a_session_may_want_more_of_the_output(tmp_path: Path, wanted: str, size: int) -> None:
    lines = MAX_RING_BYTES // 100
    body = f"[print('x' * 98 + 'y') for _ in range({lines * 2})]"
    found, _ = left(tmp_path, body, **{OUTPUT_BYTES: wanted})
    text = printed((tmp_path / f"rank{PRINTED}").read_bytes())
    assert len(text) == size
    assert text.endswith("xy\n")
    assert found["printed"] == text[-RING_BYTES:]


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    found, _ = left(tmp_path, "os.fork() or (print('child'), sys.exit(9)); os.wait()")
    assert (found["kind"], found["printed"]) == ("in peace", "first\n")


class Hostile:
    def __repr__(self) -> str:
        raise AssertionError


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("tokens", [1, 2], "list(1, 2)"),
        ("api_key", "abc", "[redacted: api key]"),
        ("hf_token", "abc", "[redacted: token]"),
        (
            "config",
            {"password": "abc", "rate": 0.5},
            "{'password': [redacted: password], 'rate': 0.5}",
        ),
        ("url", "redis://me:hunter2@host/0", "'redis://me:[redacted: connection string]@host/0'"),
        ("self", Hostile(), "<Hostile>"),
        ("many", list(range(9)), "list(0, 1, 2, 3, ... 9 in all)"),
        ("long", "y" * 999, repr("y" * 999)[:200]),
    ],
)
def test_values_are_bounded_and_secrets_redacted(name: str, value: object, text: str) -> None:
    assert redacted(name, value) == text


@pytest.mark.parametrize("ring", [b"", b"short", b"\xff" * 20])
def test_a_ring_that_is_none_is_read_without_a_failure(ring: bytes) -> None:
    assert isinstance(printed(ring), str)
