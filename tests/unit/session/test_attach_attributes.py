"""`cluster`, `tunnel`, `endpoints` and `connect` of a launch configuration, as words of attach."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dap_mux.cluster.endpoints import read_endpoint
from dap_mux.cluster.kubernetes import pod_source as kubernetes
from dap_mux.cluster.source import SourceSpec
from dap_mux.pure.errors import UsageError
from dap_mux.session.attach import shortened
from dap_mux.session.attach_attributes import attach_endpoints

HERE = {"connect": {"port": 5678}, "ranks": 4}
OC: dict[str, Any] = {"kind": "oc"}
PODS = re.compile("(?:a=)?(k8s|oc):(.*)")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"endpoints": ["node1:5678+4", "oc:job/train"]}, ["node1:5678+4", "oc:job/train"]),
        ({"endpoints": "a=ssh:node1"}, ["a=ssh:node1"]),
        (HERE, ["localhost:5678+4"]),
        ({"host": "node1", "port": 5678}, ["node1:5678+1"]),
        ({"cluster": "oc:team/trainer-0"}, ["oc:team/trainer-0"]),
        ({"cluster": ["a=oc:x", {"job": "y"}]}, ["a=oc:x", "k8s:job/y"]),
        ({"cluster": "k8s:a", "endpoints": ["node1:5678"]}, ["k8s:a", "node1:5678"]),
        ({"cluster": {**OC, "pod": "p"}}, ["oc:pod/p"]),
        ({"cluster": {**OC, "namespace": "n", "pod": "p", "ranks": 4}}, ["oc:n/pod/p:5678+4"]),
        ({"cluster": {**OC, "job": "train", "port": 6000}}, ["oc:job/train:6000"]),
        (
            {"cluster": {"namespace": "n", "job": "pytorchjob/ddp", "ranks": 2}},
            ["k8s:n/pytorchjob/ddp:5678+2"],
        ),
        (
            {"cluster": {"selector": "app=train,tier=gpu", "context": "prod", "ranks": 2}},
            ["k8s:app=train,tier=gpu@prod:5678+2"],
        ),
        ({"cluster": {"kind": "slurm", "job": 4711, "ranks": 8}}, ["slurm:4711+8"]),
        (
            {"cluster": {"kind": "slurm", "job": 4711, "step": 0, "port": 6000, "group": "eval"}},
            ["eval=slurm:4711.0:6000"],
        ),
        (
            {"cluster": {"kind": "ssh", "host": "node1", "user": "me", "ranks": 4}},
            ["ssh:me@node1:5678+4"],
        ),
        ({"cluster": "oc:team/p", "tunnel": "port-forward"}, ["oc:team/p"]),
        ({"cluster": "slurm:4711", "tunnel": False}, ["slurm:4711"]),
        (
            {"cluster": ["a=slurm:1+4", "slurm:2,ssh"], "tunnel": "ssh"},
            ["a=slurm:1+4,ssh", "slurm:2,ssh"],
        ),
        ({"cluster": "ssh:node1", "tunnel": "ssh"}, ["ssh:node1"]),
        ({"cluster": "pid:1,2", "tunnel": False}, ["pid:1,2"]),
        ({**HERE, "tunnel": False}, ["localhost:5678+4"]),
        ({**HERE, "tunnel": "ssh:me@node1"}, ["ssh:me@node1:5678+4"]),
        ({**HERE, "tunnel": "oc:team/p"}, ["oc:team/p:5678+4"]),
        (
            {"endpoints": ["node1:5678+4", "b=node2:5678-5681"], "tunnel": "ssh"},
            ["ssh:node1:5678+4", "b=ssh:node2:5678-5681"],
        ),
        ({"endpoints": ["node1:5678"], "tunnel": "ssh:me@node1"}, ["ssh:me@node1:5678"]),
    ],
)
def test_words(arguments: dict[str, Any], words: list[str]) -> None:
    assert attach_endpoints(arguments) == words
    for word in words:
        pods = PODS.fullmatch(word)  # of which reading the whole word asks for kubectl
        if pods:
            kubernetes.read(SourceSpec(pods[1], pods[2]))
        else:
            read_endpoint(word)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "attach needs `endpoints` (for example"),
        ({"connect": {"host": "localhost"}}, "attach needs `endpoints`"),
        ({"connect": {"port": 5678}, "ranks": 0}, "`ranks` must be the number of ranks, not 0"),
        ({"endpoints": 5}, "`endpoints` must be a list of strings, not 5"),
        ({"endpoints": [5678]}, "`endpoints` must be a list of strings, not [5678]"),
        ({"endpoints": {"a": 1}}, "`endpoints` must be a list of strings"),
        ({"cluster": 7}, "`cluster` must be an endpoint such as"),
        (
            {"cluster": "team/trainer-0"},
            "`cluster` 'team/trainer-0' is not an endpoint: use an endpoint",
        ),
        ({"cluster": "oc"}, "`cluster` 'oc' is not an endpoint"),
        ({"cluster": "oc:team/"}, "`cluster` 'oc:team/' is not an endpoint"),
        ({"cluster": [True]}, "`cluster` must be an endpoint such as"),
        ({"cluster": {"kind": "lsf", "job": 1}}, "must be one of k8s, oc, slurm, ssh, not 'lsf'"),
        ({"cluster": {"kind": ["oc"]}}, "kind must be one of"),
        ({"cluster": OC}, "`cluster`: oc needs pod or job or selector"),
        ({"cluster": {"pod": "p", "job": "j"}}, "needs pod or job or selector, not pod and job"),
        ({"cluster": {"kind": "ssh", "host": "h", "namespace": "n"}}, "ssh has no namespace"),
        ({"cluster": {"job": "team/ddp"}}, "job 'team/ddp' is of no known kind: job, pytorchjob"),
        ({"cluster": {"pod": ["p"]}}, "pod must be a string, not ['p']"),
        ({"cluster": {"pod": "p", "ranks": "4"}}, "ranks must be a number from 1, not '4'"),
        ({"cluster": "oc:team/p", "tunnel": "ssh:node1"}, 'is reached by "port-forward", not'),
        ({"cluster": "oc:team/p", "tunnel": False}, "leave `tunnel` out"),
        ({"cluster": "slurm:1", "tunnel": "port-forward"}, 'reached by false or "ssh", not'),
        ({"cluster": "pid:1", "tunnel": {}}, "reached by false, not by {}"),
        ({**HERE, "tunnel": "port-forward"}, '`tunnel` must be "ssh", "ssh:HOST"'),
        ({**HERE, "tunnel": "vpn:office"}, "not 'vpn:office'"),
        ({**HERE, "tunnel": True}, "not True"),
        ({"processId": 4711, **HERE}, "`processId`: ranks are not injected into running processes"),
        ({"listen": {"port": 5678}}, "`listen`: an attach configuration does not wait for ranks"),
        ({"endpoints": ["@ranks.json"], "tunnel": "ssh"}, "@ranks.json is not a host and port"),
        (
            {"endpoints": ["node2:5678+4"], "tunnel": "ssh:node1"},
            "use localhost:5678+4, or reach each host separately",
        ),
    ],
)
def test_what_cannot_be_is_said(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as said:
        attach_endpoints(arguments)
    assert sentence in str(said.value)


# What `dap-mux attach` says of many endpoints fits a line.


def test_few_endpoints_are_all_named() -> None:
    assert shortened(["a:1", "b:2-5"]) == "a:1, b:2-5"


def test_of_many_the_first_and_the_last() -> None:
    endpoints = [f"127.0.0.1:{port}" for port in range(20000, 20512)]
    assert shortened(endpoints) == (
        "127.0.0.1:20000, 127.0.0.1:20001, 127.0.0.1:20002, … 508 more …, 127.0.0.1:20511"
    )
