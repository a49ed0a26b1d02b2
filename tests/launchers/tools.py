"""The launchers and clusters that these tests use, as `tests/launchers/install` leaves them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

PLACE = "{}-{}.{}"


def environment(name: str) -> Path:
    """The `bin` folder of an engine's virtual environment; the test is skipped without it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "dap-mux" / "engines" / PLACE.format(name, *sys.version_info[:2])
    if not (place / "complete").exists():
        pytest.skip(f"{name} is not here: tests/launchers/install {name}")
    return place / "bin"


def command(name: str) -> str:
    """The path of a system command; the test is skipped without it."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not here: see tests/launchers/install")
    return found
