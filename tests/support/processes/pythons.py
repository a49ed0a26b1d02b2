"""Pythons with a debugpy for ranks, as `tests/launchers/install pythons` makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

VERSIONS: Final = ("3.10", "3.11", "3.12", "3.13")
OWN: Final = f"{sys.version_info[0]}.{sys.version_info[1]}"
NEWEST: Final = "newest"
OLDEST: Final = "1.8.14"  # the oldest debugpy that we promise to work with, as in pyproject.toml
TOO_OLD: Final = ("1.8.0", "1.8.5")
_CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def python_with(debugpy: str, version: str = OWN) -> Path | None:
    """The Python of this version that has this debugpy; None where the machine has none."""
    found = _CACHE / "dap-mux" / "engines" / f"debugpy-{debugpy}-{version}"
    return found / "bin" / "python" if (found / "complete").exists() else None


def install() -> None:
    """Make those that are missing. Raises CalledProcessError."""
    script = Path(__file__).parents[2] / "launchers" / "install"
    subprocess.run(
        [script, "pythons"],
        check=True,
        stdout=sys.stderr,
        env={**os.environ, "PYTHON": sys.executable},
    )


def other_python(folder: Path) -> str:
    """A Python that has neither dap-mux nor debugpy."""
    made = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(made, check=True, env={})
    return str(folder / "bin" / "python")
