"""All here is heavy; and the real VS Code of `tests/vscode`, for the tests that need one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.launchers.kube_scene import scene
from tests.launchers.ray_scene import cluster
from tests.real.ranks.agents import start
from tests.support.processes.commands import user
from tests.vscode.conftest import open_window, pytest_runtest_makereport

__all__ = ["cluster", "open_window", "pytest_runtest_makereport", "scene", "start", "user"]
HERE: Final = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs a launcher or a cluster is for `make test-engines`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.heavy)
