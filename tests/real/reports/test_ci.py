"""The steps of the GitHub Action and of the GitLab job of docs/record.md: a failed job's report."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.real.reports.recording import TRAIN, report_of, with_launcher
from tests.real.reports.test_record import BLOCK, PAGE
from tests.support.processes import package_index
from tests.support.processes.commands import User

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(300)]
ROOT: Final = Path(__file__).resolve().parents[3]
ACTION: Final = ROOT / ".github/actions/record"
TEXT: Final = (ACTION / "action.yml").read_text("utf-8")
INSTALL, RECORD = re.findall(r"^    - run: (.*)$", TEXT, re.MULTILINE)
DEFAULTS: Final = re.findall(r"^    default: (.*)$", TEXT, re.MULTILINE)
GITHUB, GITLAB = (block for language, block in BLOCK.findall(PAGE) if language == "yaml")


async def bash(user: User, command: str, **environ: str) -> int:
    """Run a step as GitHub does; return its exit code."""
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command]
    process = await asyncio.create_subprocess_exec(
        *shell, cwd=user.folder, env={**user.environ, **environ}
    )
    return await asyncio.wait_for(process.wait(), 120)


@pytest.mark.parametrize("fails", [True, False])
async def test_the_action_keeps_the_report_of_a_job(
    user: User, tmp_path: Path, *, fails: bool
) -> None:
    user.script(TRAIN)
    [asked] = re.findall(r"^    command: (.*)$", GITHUB, re.MULTILINE)
    [options] = re.findall(r"^    options: (.*)$", GITHUB, re.MULTILINE)
    assert options == DEFAULTS[0]
    environ = {
        **with_launcher(user),
        "RUNNER_TEMP": str(tmp_path),
        "COMMAND": f"{asked} {'fail' * fails}",
        "OPTIONS": options,
    }
    assert await bash(user, RECORD, **environ) == int(fails)
    kept = re.findall(r"^          \$\{\{ runner.temp \}\}/(.*)$", TEXT, re.MULTILINE)
    assert kept == ["report.dapmux", "report.html"]
    assert all((tmp_path / name).stat().st_size for name in kept)
    assert "if: failure()" in TEXT


@pytest.mark.rest
async def test_the_action_installs_us_from_its_own_repository(user: User, tmp_path: Path) -> None:
    package_index.require(tmp_path)
    assert await bash(user, f"{sys.executable} -m venv {tmp_path}/venv") == 0
    path = f"{tmp_path / 'venv/bin'}{os.pathsep}{os.environ['PATH']}"
    environ = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    code = await bash(user, INSTALL, **environ, PATH=path, GITHUB_ACTION_PATH=str(ACTION))
    assert code == 0
    assert await bash(user, "dap-mux record --help", PATH=path) == 0


async def test_the_job_of_gitlab(user: User) -> None:
    user.script(TRAIN)
    [script] = re.findall(r"^    - (dap-mux .*)$", GITLAB, re.MULTILINE)
    assert await bash(user, f"{script} fail", **with_launcher(user)) == 1
    assert report_of(user).report.job_exit == 1
    kept = re.findall(r"paths: \[(.*)\]", GITLAB)[0].split(", ")
    assert all((user.folder / name).stat().st_size for name in kept)
