"""A report that comes back, and files that are none."""

from __future__ import annotations

import io
import zipfile

import pytest

from dap_mux.frontends.report import report_file
from dap_mux.frontends.report.report_file import (
    At,
    Contents,
    Frame,
    Printed,
    Report,
    Stop,
    Thread,
    Variable,
    packed,
    read,
)
from dap_mux.pure.errors import UsageError

HEADER = Report(
    version=report_file.VERSION,
    made_by="dap-mux 0.1.0",
    made="2026-01-02T03:04:05Z",
    command=("torchrun", "train.py"),
    ranks=(0, 1),
    end="all ranks ended with exit code 0",
    job_exit=0,
)
FRAME = Frame("step", "/job/train.py", 31, (Variable("loss", "0.5", "float"),))
STOP = Stop(
    after_s=1.5,
    title="0-1 stopped at train.py:31 (breakpoint)",
    at=(At("0-1", "stopped", "breakpoint", threads=(Thread("MainThread", (FRAME,)),)),),
)
OUTPUT = (Printed("step 0\n", ranks="0"),)


def test_round_trip() -> None:
    data = packed(HEADER, [STOP], OUTPUT, {"/job/train.py": "loss = 0.5\n"})
    found = read(data, "a.dapmux")
    assert found == Contents(found.report, (STOP,), OUTPUT, {"/job/train.py": "loss = 0.5\n"})
    assert found.report.command == HEADER.command


def of_members(**members: bytes) -> bytes:
    """Return a zip file with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "."), data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no whole report"),
        (b"%PDF-1.7", "no whole report"),
        (packed(HEADER, [STOP], OUTPUT, {})[:-40], "no whole report"),
        (of_members(other=b"{}"), "report.json"),
        (of_members(report__json=b"[" * 100_000), "report.json"),
        (of_members(report__json=b"{}"), "version"),
        (
            of_members(report__json=b"0" * (report_file.MAX_MEMBER + 1)),
            "has more than 64 MB",
        ),
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
