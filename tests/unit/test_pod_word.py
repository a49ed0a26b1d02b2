"""What a rank in a pod says of the way to it: words that `dap-mux attach` reads."""

from __future__ import annotations

import pytest

from dap_mux.cluster.kubernetes.pod_source import read
from dap_mux.cluster.source import SourceSpec
from dap_mux.rank.api import word_of

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


@pytest.mark.parametrize(
    ("environ", "hostname", "namespace", "port", "word"),
    [
        ({}, "trainer-0", "team", 5678, "k8s:team/trainer-0"),
        ({}, "trainer-0", "", 5681, "k8s:trainer-0:5681"),
        ({"JOB_COMPLETION_INDEX": "3"}, "train-3", "team", 5678, "k8s:team/job/train"),
        ({"JOB_COMPLETION_INDEX": "3"}, "node7", "", 5678, "k8s:node7"),
        (
            {"JOB_COMPLETION_INDEX": "3", "POD_NAME": "train-3-x7k", "POD_NAMESPACE": "mine"},
            "train-3",
            "team",
            5678,
            "k8s:mine/train-3-x7k",
        ),
    ],
)
def test_the_way_to_a_pod(
    environ: dict[str, str], hostname: str, namespace: str, port: int, word: str
) -> None:
    assert word_of({**IN_A_POD, **environ}, hostname, namespace, port) == word
    assert port in read(SourceSpec("k8s", word.partition(":")[2])).ports


def test_elsewhere_an_address_does() -> None:
    assert word_of({"JOB_COMPLETION_INDEX": "3"}, "train-3", "team", 5678) is None
