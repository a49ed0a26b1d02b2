"""A report that comes back, and files that are none."""

from __future__ import annotations

import pytest

from dap_mux.frontends.report.report_file import MAX_MEMBER, Contents, Report, packed, read
from dap_mux.pure.errors import UsageError
from tests.support.reports.sample import OUTPUT, PATH, REPORT, STOPS, TEXT, of_members, sample


def test_round_trip() -> None:
    found = read(sample(), "a.dapmux")
    assert found == Contents(found.report, STOPS, OUTPUT, {PATH: TEXT})
    assert found.report.command == REPORT.command


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no whole report"),
        (b"%PDF-1.7", "no whole report"),
        (sample()[:-40], "no whole report"),
        (of_members({"other": b"{}"}), "report.json"),
        (of_members({"report.json": b"[" * 100_000}), "report.json"),
        (of_members({"report.json": b"{}"}), "version"),
        (of_members({"report.json": b"0" * (MAX_MEMBER + 1)}), "has more than 64 MB"),
        (
            packed(Report(99, "dap-mux 9", "", (), (), ""), [], (), {}),
            "its version is 99, this dap-mux reads 1",
        ),
    ],
    ids=["empty", "foreign", "truncated", "other", "nested", "no-fields", "bomb", "newer"],
)
def test_bad_file_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(data, "bad.dapmux")
