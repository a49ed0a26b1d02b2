"""What a line of `wait` means."""

from __future__ import annotations

import pytest

from dap_mux.console.commands import parse_wait_arguments


@pytest.mark.parametrize(
    ("rest", "meant"),
    [
        ("", ("all", "stopped", 60.0)),
        ("exited", ("all", "exited", 60.0)),
        ("stopped 5", ("all", "stopped", 5.0)),
        ("3", ("3", "stopped", 60.0)),
        ("0-3 2.5", ("0-3", "stopped", 2.5)),
        ("ranks(0:4) & ~3 running 10s", ("ranks(0:4) & ~3", "running", 10.0)),
        ("stopped exited", ("stopped", "exited", 60.0)),
    ],
)
def test_read(rest: str, meant: tuple[str, str, float]) -> None:
    assert parse_wait_arguments(rest) == meant
