"""The recorder's decisions: when it needs a debugger, and whose output is in the report."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.frontends.console.session_client import SessionClient
from dap_mux.frontends.report.recorder import MAX_CHARACTERS, Recorder, needs_debugger
from dap_mux.frontends.report.report_file import Printed

HELD = "failed: ValueError at train.py:3, held, 30 s left"


def row(**changed: Any) -> dict[str, Any]:
    """A rank of this machine that runs, and has no debugger."""
    usual = {"group": "job", "state": "waiting", "reason": None, "endpoint": "127.0.0.1:5678"}
    return {**usual, **changed}


@pytest.mark.parametrize(
    ("changed", "needs"),
    [
        ({}, False),
        ({"endpoint": "[::1]:5678"}, False),
        ({"reason": HELD}, True),
        ({"reason": "failed: ValueError at train.py:3", "state": "exited"}, False),
        ({"endpoint": "10.0.0.2:5678"}, True),
        ({"endpoint": "10.0.0.2:5678", "state": "exited"}, False),
        ({"endpoint": None}, True),
        ({"group": "dask"}, True),
    ],
)
def test_a_debugger_is_needed_only_where_it_alone_can_see(
    changed: dict[str, Any], needs: bool
) -> None:
    assert needs_debugger(row(**changed)) == needs


async def nobody() -> SessionClient:
    """No recorder joins here."""
    raise AssertionError


def recorder(group: str) -> Recorder:
    """One that has seen a notice, and a line of two ranks."""
    one = Recorder(nobody, [])
    one.rows = {(group, 0): row(group=group), (group, 1): row(group=group)}
    one.output({"output": "dap-mux: rank 0 failed\n"})
    one.output({"output": "[0-1] seen by a debugger\n", "category": "stdout"})
    return one


def test_what_ranks_have_kept_replaces_what_a_debugger_saw() -> None:
    one = recorder("job")
    long = "x" * MAX_CHARACTERS
    one.replace_output([(("job", 0), "same\n"), (("job", 1), ""), (("job", 2), long),
                        (("job", 3), "same\n")])  # fmt: skip
    assert one.printed == [
        Printed("dap-mux: rank 0 failed\n", "console"),
        Printed("same\n", ranks="0,3"),
        Printed("x" * (MAX_CHARACTERS // 4), ranks="2"),
    ]


def test_the_output_of_a_cluster_is_what_a_debugger_saw() -> None:
    one = recorder("dask")
    before = one.printed
    one.replace_output([(("dask", 0), "kept\n")])
    assert one.printed == before
