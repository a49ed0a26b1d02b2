"""The wait for a debugger, and the clock that ends it."""

from __future__ import annotations

import threading

import pytest

from dap_mux.rank.hold import wait_for_debugger

LIMIT = 30.0  # s; not a wait


class SlowToBegin:
    """debugpy's `wait_for_client` in a process that is held up until after the clock has rung."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def __call__(self) -> None:
        assert self._rung.wait(LIMIT)
        ended = threading.Event()
        self.cancel = ended.set  # type: ignore[method-assign]
        assert ended.wait(LIMIT), "it waits for ever"

    def cancel(self) -> None:
        """As debugpy's own before its first wait has begun."""
        self._rung.set()
        raise RuntimeError("wait_for_client() must be called first")


def test_a_wait_that_begins_after_its_time_ends_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("debugpy.wait_for_client", SlowToBegin())
    monkeypatch.setattr("debugpy.is_client_connected", lambda: False)
    assert wait_for_debugger(0.0) is False
