"""Installing packages in a home that has no settings of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

_PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def settings() -> dict[str, str]:
    """Variables that make pip and uv use the package index of whoever runs the tests."""
    found = {}
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "pip/pip.conf"
    if config.exists():
        found["PIP_CONFIG_FILE"] = str(config)
    index = _pip("config", "get", "global.index-url")
    if index.returncode == 0:  # uv does not read pip's
        found["UV_DEFAULT_INDEX"] = index.stdout.strip()
    return found


def require(folder: Path) -> None:
    """Skip the test where no package can be fetched; `folder` takes what is fetched to find out."""
    done = _pip("download", "--quiet", "--no-deps", "--dest", str(folder), "shtab")
    if done.returncode != 0:
        pytest.skip(f"no package index: {done.stderr.strip()[-200:]}")


def _pip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_PIP, *words], capture_output=True, text=True, check=False)
