"""Which class reads which scheme: ours, and what other packages bring by entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from dap_mux.cluster import openpai
from dap_mux.cluster.endpoints import (
    ENTRY_POINTS,
    description_of,
    descriptions,
    has_source,
    read_endpoint,
    registered,
    source_of,
)
from dap_mux.cluster.source import Description, SourceSpec
from dap_mux.cluster.ssh import Ssh
from dap_mux.frontends.cli.entry import parse
from dap_mux.pure.errors import UsageError
from dap_mux.session.attach_attributes import attach_endpoints

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
LSF = """\
from dap_mux.cluster.source import BY_CHOICE, Description


class Plain:
    def __init__(self, word):
        self.word = word


class Lsf(Plain):
    description = Description(
        help="lsf:JOBID", tunnels=BY_CHOICE, tunnel_to="HOST", names=("job",), others=("queue",)
    )
"""
DECLARED = f"""\
[{ENTRY_POINTS}]
lsf = somebodys_lsf:Lsf
plain = somebodys_lsf:Plain
broken = somebodys_lsf:Gone
ssh = somebodys_lsf:Lsf
"""


@pytest.fixture
def lsf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody's package is installed, with a source for the scheme `lsf`."""
    (tmp_path / "somebodys_lsf.py").write_text(LSF, "utf-8")
    info = tmp_path / "somebodys_lsf-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-lsf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(DECLARED, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    registered.cache_clear()
    yield
    registered.cache_clear()
    sys.modules.pop("somebodys_lsf", None)


def attach_help() -> str:
    """What `dap-mux attach --help` prints, in one line."""
    with redirect_stdout(StringIO()) as printed, pytest.raises(SystemExit):
        parse(["attach", "--help"])
    return " ".join(printed.getvalue().split())


def test_ours_are_what_the_package_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = {scheme: entry.value for scheme, entry in registered().items()}
    assert found == project["entry-points"][ENTRY_POINTS]
    assert descriptions().keys() == found.keys(), "each can be loaded"


def test_nothing_but_its_own_folder_names_openpai() -> None:
    """So a package of somebody else's can be as much as this one is."""
    own = Path(openpai.__file__).parent
    listing = own.parent / "__init__.py"
    others = [each for each in (ROOT / "dap_mux").rglob("*.py") if own not in each.parents]
    assert [each for each in others if "openpai" in each.read_text("utf-8")] == [listing]


def test_another_package_brings_a_source(lsf: None) -> None:
    named = read_endpoint("trainer=lsf:4711")
    assert type(named.source).__name__ == "Lsf"
    assert getattr(named.source, "word", None) == SourceSpec("lsf", "4711")
    assert named.group == "trainer"
    assert has_source("lsf:4711")


def test_a_host_that_is_called_like_a_scheme_needs_its_domain(lsf: None) -> None:
    assert read_endpoint("lsf:5678").source
    (record,) = read_endpoint("lsf.cluster:5678").records
    assert record.endpoint == "lsf.cluster:5678"


def test_nobody_reads_this() -> None:
    assert source_of(SourceSpec("lsf", "4711")) is None
    assert description_of("lsf") is None
    assert not has_source("lsf:4711")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cluster": "lsf:4711", "tunnel": "ssh"}, ["lsf:4711,ssh"]),
        ({"cluster": "lsf:4711", "tunnel": False}, ["lsf:4711"]),
        ({"cluster": {"kind": "lsf", "job": 4711}}, ["lsf:4711"]),
        ({"cluster": {"kind": "lsf", "job": 1, "ranks": 4, "group": "a"}}, ["a=lsf:1:5678+4"]),
        ({"connect": {"port": 5678}, "ranks": 4, "tunnel": "lsf:node1"}, ["lsf:node1:5678+4"]),
        ({"cluster": "plain:x", "tunnel": False}, ["plain:x"]),
    ],
)
def test_a_launch_configuration_names_it(
    lsf: None, arguments: dict[str, Any], words: list[str]
) -> None:
    assert attach_endpoints(arguments) == words


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"cluster": {"kind": "nqs"}}, "must be one of k8s, oc, slurm, ssh, lsf, not 'nqs'"),
        ({"cluster": {"kind": "plain"}}, "must be one of k8s, oc, slurm, ssh, lsf, not 'plain'"),
        ({"cluster": {"kind": "lsf", "host": "h"}}, "lsf has no host; it has kind, group, port"),
        ({"cluster": "lsf:1", "tunnel": "port-forward"}, 'is reached by false or "ssh", not'),
        ({"cluster": "plain:x", "tunnel": "ssh"}, 'plain:x is reached by false, not by "ssh"'),
        ({"connect": {"port": 1}, "tunnel": "plain:x"}, '"ssh:HOST", "oc:NAMESPACE/POD", "lsf:HO'),
        ({"cluster": "broken:x"}, "broken: its source cannot be loaded: "),
    ],
)
def test_what_it_does_not_declare_is_refused(
    lsf: None, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError) as said:
        attach_endpoints(arguments)
    assert sentence in str(said.value)


def test_the_help_names_it(lsf: None) -> None:
    assert "pid:NUMBER, slurm:JOBID, ssh:HOST, lsf:JOBID or dial:COUNT" in attach_help()


def test_without_it_the_help_names_ours() -> None:
    assert (
        "k8s:job/NAME (or pytorchjob/, mpijob/, jobset/, rayjob/), openpai:URL/USER/JOB, "
        "pid:NUMBER, slurm:JOBID, ssh:HOST or dial:COUNT; or GROUP=ENDPOINT"
    ) in attach_help()


def test_nobody_replaces_ours(lsf: None) -> None:
    assert isinstance(source_of(SourceSpec("ssh", "node1")), Ssh)
    assert description_of("plain") == Description()
