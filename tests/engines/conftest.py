"""The real VS Code of `tests/vscode`, for the tests here that need one."""

from __future__ import annotations

from tests.vscode.conftest import open_window, pytest_runtest_makereport

__all__ = ["open_window", "pytest_runtest_makereport"]
