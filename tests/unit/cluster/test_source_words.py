"""The words `slurm:`, `ssh:` and `pid:`, as they are typed."""

from __future__ import annotations

import re

import anyio
import pytest

from dap_mux.cluster.endpoints import read_endpoint
from dap_mux.cluster.pid import Pids
from dap_mux.cluster.slurm import Name
from dap_mux.cluster.source import SourceSpec
from dap_mux.cluster.ssh import Ssh
from dap_mux.pure.errors import UsageError


@pytest.mark.parametrize(
    ("rest", "name"),
    [
        ("4711", Name(job="4711")),
        ("4711.0", Name(job="4711", step="0")),
        ("4711.batch", Name(job="4711", step="batch")),
        ("4711_2", Name(job="4711_2")),
        ("4711_2.1:6000", Name(job="4711_2", step="1", port=6000, names_ports=True)),
        ("4711+8", Name(job="4711", ranks=8, names_ports=True)),
        ("4711:6000+8", Name(job="4711", port=6000, ranks=8, names_ports=True)),
        ("4711,ssh", Name(job="4711", by_ssh=True)),
    ],
)
def test_a_slurm_job(rest: str, name: Name) -> None:
    assert Name.read(SourceSpec("slurm", rest)) == name


@pytest.mark.parametrize("rest", ["", "x", "0", "12.", "12:", "12:99999", "12+0", "12 ", "12;id"])
def test_not_a_slurm_job(rest: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"slurm:{rest}")):
        read_endpoint(f"slurm:{rest}")


@pytest.mark.parametrize(
    ("rest", "target", "addresses"),
    [
        ("node1", "node1", ["node1:5678"]),
        ("me@node1:6000", "me@node1", ["node1:6000"]),
        ("gpu-node-1", "gpu-node-1", ["gpu-node-1:5678"]),
        ("node1+2", "node1", ["node1:5678", "node1:5679"]),
        ("gpu-1:6000-6001", "gpu-1", ["gpu-1:6000", "gpu-1:6001"]),
        ("node1:6000+2", "node1", ["node1:6000", "node1:6001"]),
        ("me@[fe80::1]:6000", "me@fe80::1", ["[fe80::1]:6000"]),
    ],
)
def test_a_host_for_ssh(rest: str, target: str, addresses: list[str]) -> None:
    ssh = Ssh(SourceSpec("ssh", rest))
    assert ssh.target == target
    assert [record.endpoint for record in anyio.run(ssh.discover)] == addresses


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "-oProxyCommand=id",
        "node1:0",
        "node1:70000",
        "node1:2-1",
        "no de",
        "a@b@c",
        "a;id",
        "$(id)",
    ],
)
def test_not_a_host_for_ssh(rest: str) -> None:
    """A word that begins with a dash would be an option of ssh."""
    with pytest.raises(UsageError, match="ssh:"):
        read_endpoint(f"ssh:{rest}")


@pytest.mark.parametrize("rest", ["", "x", "0", "12,", "12 34", "12,12", "-1"])
def test_not_process_numbers(rest: str) -> None:
    with pytest.raises(UsageError, match="pid:"):
        read_endpoint(f"pid:{rest}")


def test_process_numbers() -> None:
    assert isinstance(read_endpoint("trainer=pid:12,34").source, Pids)
