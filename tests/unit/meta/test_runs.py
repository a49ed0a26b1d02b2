"""With DAP_MUX_REQUIRE_ALL=1 a skip is a failure, and randomised tests do all their rounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import rounds

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
