"""The folders of killed workers are removed, whatever else has been put beside them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dap_mux.frameworks import arming


@pytest.mark.parametrize("name", ["²-x", f"{'9' * 20}-x", f"{'9' * 100}-x", "-x", "one-x"])
def test_a_name_without_a_process_id_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    odd = tmp_path / f"{arming.PREFIX}{name}"
    left = tmp_path / f"{arming.PREFIX}{ended.pid}-x"
    for folder in (odd, left):
        folder.mkdir()
    arming._remove_leftovers()
    assert odd.exists()
    assert not left.exists()
