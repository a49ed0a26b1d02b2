"""The wheel of this checkout, as a user has it: a file, and an environment that has only that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.processes import package_index

ROOT: Final = Path(__file__).resolve().parents[3]


def built(folder: Path) -> Path:
    """Build the wheel into a folder."""
    make = [ROOT / "tools/make-wheel", folder]
    subprocess.run(make, env={**os.environ, "PYTHON": sys.executable}, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path) -> Path:
    """Install it with what it needs; return the environment. Skips without a package index."""
    package_index.require(folder)
    place = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = (place / "bin/python", "-m", "pip", "--disable-pip-version-check")
    subprocess.run([*pip, "install", "--quiet", wheel], check=True)
    return place
