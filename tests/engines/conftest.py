"""The real VS Code of `tests/vscode`, for the tests here that need one."""

from __future__ import annotations

from tests.vscode.conftest import browser, open_window, own_server, pytest_runtest_makereport

__all__ = ["browser", "open_window", "own_server", "pytest_runtest_makereport"]
