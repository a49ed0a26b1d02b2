"""Which class reads which scheme: ours, and what other packages bring by entry point."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dap_mux.cluster.endpoints import BUILT_IN, ENTRY_POINTS, read_endpoint, source_of
from dap_mux.cluster.source import SourceSpec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
LSF = """\
class Lsf:
    def __init__(self, word):
        self.word = word
"""


@pytest.fixture
def lsf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's package is installed, with a source for the scheme `lsf`."""
    (tmp_path / "somebodys_lsf.py").write_text(LSF, "utf-8")
    info = tmp_path / "somebodys_lsf-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-lsf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nlsf = somebodys_lsf:Lsf\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_table_is_what_the_package_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"][ENTRY_POINTS] == BUILT_IN


@pytest.mark.parametrize("scheme", BUILT_IN)
def test_each_of_ours_can_be_loaded(scheme: str) -> None:
    module, _, name = BUILT_IN[scheme].partition(":")
    assert hasattr(__import__(module, fromlist=[name]), name)


def test_another_package_brings_a_source(lsf: None) -> None:
    named = read_endpoint("trainer=lsf:4711")
    assert type(named.source).__name__ == "Lsf"
    assert getattr(named.source, "word", None) == SourceSpec("lsf", "4711")
    assert named.group == "trainer"


def test_a_host_that_is_called_like_a_scheme_needs_its_domain(lsf: None) -> None:
    assert read_endpoint("lsf:5678").source
    (record,) = read_endpoint("lsf.cluster:5678").records
    assert record.endpoint == "lsf.cluster:5678"


def test_nobody_reads_this() -> None:
    assert source_of(SourceSpec("lsf", "4711")) is None
