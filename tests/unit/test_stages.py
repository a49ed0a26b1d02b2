"""`make test` runs every stage to its end, and its last lines name what failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "stages.py"
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:xdist -p no:asyncio"


def run(where: Path, *stages: str) -> tuple[int, list[str]]:
    """Exit code, and the lines of the summary and all before it."""
    command = [sys.executable, str(TOOL), "kept", *stages]
    ended = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    assert not ended.stderr, ended.stderr
    return ended.returncode, ended.stdout.splitlines()


def test_what_follows_a_failure_runs_and_the_summary_names_the_failure(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_a.py").write_text("def test_x(): assert False\ndef test_y(): pass\n")
    code, lines = run(tmp_path, f"first={PYTEST} test_a.py", "second=touch ran")
    assert code == 1
    assert (tmp_path / "ran").exists()
    first = next(n for n, line in enumerate(lines) if line.startswith("first "))
    assert "FAILED (exit code 1)" in lines[first]
    assert lines[first + 1].strip() == "test_a.py::test_x"
    assert lines[first + 2].startswith("second")
    assert "passed" in lines[first + 2]


def test_two_stages_side_by_side_meet_and_the_first_prints_when_both_ended(tmp_path: Path) -> None:
    """Each waits until the other has written: one after the other, neither would end."""
    meet = "echo {0} > {0}; until [ -s {1} ]; do :; done; echo {0} has met {1}"
    code, lines = run(
        tmp_path, f"vsix+={meet.format('a', 'b')}", f"units={meet.format('b', 'a')}; exit 3"
    )
    assert code == 1
    assert [line for line in lines if "met" in line] == ["b has met a", "a has met b"]
    assert [line.split(",")[0].split(None, 1) for line in lines[-2:]] == [
        ["vsix", "passed"],
        ["units", "FAILED (exit code 3)"],
    ]


def test_what_ran_beside_another_and_failed_has_its_output_in_a_file(tmp_path: Path) -> None:
    code, lines = run(tmp_path, "vsix+=echo no node; exit 1", "units=true")
    assert code == 1
    assert "    output: kept/vsix.log" in lines
    assert (tmp_path / "kept" / "vsix.log").read_text() == "no node\n"


def test_all_green_is_exit_code_0_and_no_stage_at_all_is_an_error(tmp_path: Path) -> None:
    assert run(tmp_path, "one=true")[0] == 0
    command = [sys.executable, str(TOOL), "kept"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "NAME=COMMAND" in ended.stderr
