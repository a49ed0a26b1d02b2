"""What a release publishes: the steps of its workflow, as far as they need no account."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import package_index

pytestmark = [
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
ROOT: Final = Path(__file__).resolve().parents[3]
WORKFLOW: Final = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
STEP: Final = re.compile(r"^      - run: (.*)$", re.MULTILINE)


def test_from_a_source_distribution_to_what_is_published(tmp_path: Path) -> None:
    """The first job's steps, in what `sdist` holds: all that a release needs is in there."""
    package_index.require(tmp_path)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    clone = tmp_path / archive.name.removesuffix(".tar.gz")
    jobs = WORKFLOW.partition("\njobs:\n")[2]
    _, first, *others = re.split(r"^  \w+:$", jobs, flags=re.MULTILINE)
    for step in STEP.findall(first):
        run(step, clone)
    names = {each.name for each in (clone / "dist").iterdir()}
    assert names == {
        archive.name,
        "dap-mux-cluster.cdx.json",
        "dap-mux-vsix.cdx.json",
        "dap-mux.vsix",
        "dap_mux_cluster-0.1.0-py3-none-any.whl",
    }
    inside = json.loads((clone / "dist/dap-mux-cluster.cdx.json").read_text("utf-8"))
    found = {each["name"] for each in inside["components"]}
    assert {"anyio", "debugpy", "msgspec", "prompt_toolkit", "rich"} <= found
    assert "pytest" not in found
    # What the others publish of it: PyPI would refuse what is neither a wheel nor a source.
    run(STEP.findall(others[0])[0], clone)
    assert {each.suffix for each in (clone / "packages").iterdir()} == {".whl", ".gz"}
    assert (clone / "dist/dap-mux.vsix").exists()
    assert all("dist/dap-mux.vsix" in step for step in STEP.findall(others[1]))


def run(step: str, folder: Path) -> None:
    """Run a step as the workflow does."""
    environ = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        ["bash", "-e", "-c", step],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{step}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
