"""How tests are run: all stages to their end, and a skip fails where everything is required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import rounds

TOOL = Path(__file__).resolve().parents[3] / "tools" / "stages.py"
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


# With DAP_MUX_REQUIRE_ALL=1 a skip is a failure, and randomised tests do all their rounds.

REPOSITORY = Path(__file__).resolve().parents[3]
WAYS = {
    "test_call": "def test_it():\n    pytest.skip('no kubectl')\n",
    "test_mark": "@pytest.mark.skipif(True, reason='no kubectl')\ndef test_it(): pass\n",
    "test_fixture": "@pytest.fixture\ndef tool(): pytest.skip('no kubectl')\n"
    "def test_it(tool): pass\n",
    "test_module": "pytest.skip('no kubectl', allow_module_level=True)\n",
    "test_xfail": "@pytest.mark.xfail(reason='known')\ndef test_it():\n    assert False\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("require_all", "outcome"),
    [("0", "4 skipped, 1 xfailed"), ("1", "1 failed, 1 xfailed, 3 errors")],
)
def test_every_way_to_skip(require_all: str, outcome: str, tmp_path: Path) -> None:
    for name, source in WAYS.items():
        (tmp_path / f"{name}.py").write_text(f"import pytest\n{source}")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini")]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--continue-on-collection-errors", *options, tmp_path],
        cwd=REPOSITORY,
        env={**os.environ, "DAP_MUX_REQUIRE_ALL": require_all},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize(("require_all", "drawn"), [("1", [100, 1]), ("0", [25, 1])])
def test_what_is_drawn_at_random_is_drawn_in_full(
    require_all: str, drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAP_MUX_REQUIRE_ALL", require_all)
    assert [rounds(100), rounds(1)] == drawn
