"""A report that comes back, and files that are none."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from dap_mux.frontends.cli import main
from dap_mux.frontends.report.report_file import MAX_MEMBER, Contents, Report, Stop, packed, read
from tests.support.reports.sample import OUTPUT, PATH, REPORT, STOPS, TEXT, at, of_members, sample


def test_round_trip() -> None:
    found = read(sample(), "a.dapmux")
    assert found == Contents(found.report, STOPS, OUTPUT, {PATH: TEXT})
    assert found.report.command == REPORT.command


def with_member(name: str, data: bytes) -> bytes:
    """Return the sample, with one member more or instead."""
    with zipfile.ZipFile(io.BytesIO(sample())) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    return of_members({**members, name: data})


def of_ranks(ranks: str) -> bytes:
    return packed(REPORT, [Stop(1.0, "here", (at(ranks, 5, "0.0"),))], (), {})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no whole report of dap-mux"),
        (b"%PDF-1.7\n" * 99, "no whole report of dap-mux"),
        (sample()[:-60], "no whole report of dap-mux"),
        (of_members({"../../escaped": b"x"}), "report.json"),
        (of_members({"report.json": b"[" * 100_000}), "report.json"),
        (of_members({"report.json": b"{}"}), "version"),
        (of_members({"report.json": b"0" * (MAX_MEMBER + 1)}), "has more than 64 MB"),
        (with_member("stops/0003.json", b" " * (MAX_MEMBER + 1)), "has more than 64 MB"),
        (with_member("stops/0003.json", b"[" * 9999), "no report of dap-mux"),
        (
            packed(Report(99, "dap-mux 9", "", (), (), ""), [], (), {}),
            "its version is 99, this dap-mux reads 1",
        ),
        (of_ranks("0-4000000000"), "are no ranks"),
        (of_ranks("0-999999999,0-999999999"), "two places at once"),
        (of_ranks("9"), "ranks 9 are unknown"),
        (
            packed(replace(REPORT, ranks=()), [], (), {}),
            "has no rank to show: rank 3 ended with exit code 7",
        ),
        (packed(REPORT, [Stop(1.0, "", (), why={"verdict": 1})], (), {}), "Expected `str`"),
    ],
    ids=[
        "empty", "foreign", "truncated", "climbing", "nested", "no-fields", "bomb", "later-bomb",
        "later-nested", "newer", "absurd", "twice", "unknown", "no-rank", "no-verdict",
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(
    data: bytes,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.dapmux").write_bytes(data)
    assert main(["open", "report.dapmux"]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["report.dapmux"]
