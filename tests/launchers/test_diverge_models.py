"""`diverge` of models as people train them: a small GPT, and FSDP2 with tensor parallelism."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.frontends.cli.diverge import of_replicas, read_trace
from tests.diverge_score.expected import ENVIRONMENT
from tests.diverge_score.traces import trace_of

pytestmark = [pytest.mark.timeout(500), pytest.mark.real, pytest.mark.slow]
SCRIPTS: Final = Path(__file__).parent / "scripts"
GPT: Final = SCRIPTS / "small_gpt.py"
TITAN: Final = SCRIPTS / "small_titan.py"


def replicas(folder: Path, program: Path, *arguments: str, mode: str = "hash") -> dict[str, Any]:
    """What is said of four ranks."""
    trace = trace_of(folder, program, 4, ENVIRONMENT, *arguments, mode=mode)
    return of_replicas(read_trace(trace))


def test_a_gpt_with_a_layer_outside_of_ddp(tmp_path: Path) -> None:
    assert replicas(tmp_path, GPT)["sentence"] == (
        "no difference; parameters compared: 27, steps: 4"
    )
    found = replicas(tmp_path, GPT, "--unwrapped")
    assert (found["kind"], found["step"], found["tensor"]) == ("not-exchanged", 0, "1.weight")
    assert found["ranks"] == [1, 2, 3]


@pytest.mark.parametrize("mode", ["hash", "operations"])
def test_fsdp2_with_tensor_parallelism(tmp_path: Path, mode: str) -> None:
    """Ranks 0 and 1 share shards of the data, and have the same norms; so have 2 and 3."""
    assert replicas(tmp_path, TITAN, mode=mode)["sentence"] == (
        "no difference; parameters compared: 10, steps: 4"
    )
    found = replicas(tmp_path, TITAN, "--by-rank", mode=mode)
    assert (found["step"], found["ranks"]) == (2, [1]), found
    assert found["tensor"] == "layers.0.norm.weight@0"
    log = (tmp_path / "trace-4.log").read_text("utf-8")
    assert "misses" not in log
    assert "Warning" not in log
