"""debugpy's description of the environment: left out by a private interface, which may change."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from dap_mux.rank.in_process import _undescribed


@pytest.mark.parametrize(
    "log",
    [
        None,
        SimpleNamespace(),
        SimpleNamespace(describe_environment=print, log_dir=None, stderr=SimpleNamespace()),
    ],
)
def test_a_debugpy_that_has_changed_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, log: SimpleNamespace | None
) -> None:
    monkeypatch.setitem(sys.modules, "debugpy.common.log", log)
    before = dict(vars(log)) if log else {}
    with _undescribed():
        assert (vars(log) if log else {}) == before
