"""Files that an editor names and that are no files to read: they are left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dap_mux.lsp.file_versions import FileVersions
from dap_mux.lsp.launch_json import encoding_problem


@pytest.fixture(params=["FIFO", "device", "folder"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / "odd.py"
    if request.param == "FIFO":
        os.mkfifo(path)
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    return str(path)


@pytest.mark.timeout(20)
def test_they_are_not_read(odd: str) -> None:
    assert encoding_problem(odd) is None
    assert FileVersions(odd, "opened").line_now(1, 0.0, "opened") == 1
