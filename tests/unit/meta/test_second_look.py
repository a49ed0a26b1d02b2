"""CI looks at a failed test a second time, alone; only a test that fails twice is red."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "second_look.py"
UNSTABLE = """
from pathlib import Path

def test_unstable():
    print("said by the test")
    seen = Path("seen")
    seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
    assert len(seen.read_text()) > 1, "only the first time"
"""
FINE = "def test_fine():\n    pass\n"
BROKEN = "def test_broken():\n    assert False\n"
KILLED = "import os\n\ndef test_killed():\n    os._exit(1)\n"
MANY = "import pytest\n\n@pytest.mark.parametrize('n', range(11))\ndef test_many(n): assert False\n"

pytestmark = pytest.mark.slow


def look(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tool as CI does, in a folder with tests of its own."""
    command = [sys.executable, str(TOOL), *arguments]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -p no:xdist\n")
    (tmp_path / "test_fine.py").write_text(FINE)
    return tmp_path


def test_without_failures(project: Path) -> None:
    assert look(project, "first", "report", "test_fine.py").returncode == 0
    second = look(project, "second", "report")
    assert (second.returncode, second.stdout) == (0, "unstable: none\n")


@pytest.mark.heavy
def test_passes_the_second_time(project: Path) -> None:
    (project / "test_unstable.py").write_text(UNSTABLE)
    assert look(project, "first", "report", "test_unstable.py").returncode == 0
    assert look(project, "first", "report", "test_fine.py").returncode == 0
    second = look(project, "second", "report")
    assert second.returncode == 0, second.stdout
    assert "unstable: test_unstable.py::test_unstable\n" in second.stdout
    kept = project / "report" / "unstable" / "test_unstable.py_test_unstable"
    first_output = (kept / "first.txt").read_text()
    assert "only the first time" in first_output
    assert "said by the test" in first_output
    assert (kept / "second.txt").read_text().endswith("passed\n")


@pytest.mark.heavy
def test_fails_twice(project: Path) -> None:
    (project / "test_broken.py").write_text(BROKEN)
    assert look(project, "first", "report", "test_broken.py", "test_fine.py").returncode == 0
    second = look(project, "second", "report")
    assert second.returncode == 1
    assert "failed twice:\n  test_broken.py::test_broken" in second.stdout
    assert "unstable:" not in second.stdout


@pytest.mark.parametrize(
    ("source", "status", "why"),
    [
        (MANY, 1, "11 tests failed: too many for a second look"),
        (KILLED, 3, "pytest ended before its report was complete"),
        ("import missing_module\n", 2, ""),
        ("", 5, ""),
    ],
    ids=["too many", "killed", "collection error", "no tests"],
)
def test_red_at_once(project: Path, source: str, status: int, why: str) -> None:
    (project / "test_other.py").write_text(source)
    first = look(project, "first", "report", "test_other.py")
    assert first.returncode == status
    assert why in first.stderr
