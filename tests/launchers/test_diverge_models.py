"""`diverge` of models as people train them: a small GPT, and FSDP2 with tensor parallelism."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.frontends.cli.diverge import of_replicas, of_runs
from dap_mux.pure.insight.numerics.diverge_trace import RankTrace
from dap_mux.session.traces import read_trace
from tests.diverge_score.expected import ENVIRONMENT
from tests.diverge_score.traces import trace_of
from tests.launchers.launching import line
from tests.support.combinations import rest

pytestmark = [pytest.mark.timeout(500), pytest.mark.real, pytest.mark.slow]
SCRIPTS: Final = Path(__file__).parent / "scripts"
GPT: Final = SCRIPTS / "small_gpt.py"
TITAN: Final = SCRIPTS / "small_titan.py"


def said_of(folder: Path, mode: str, *arguments: str) -> dict[str, Any]:
    """What is said of four ranks."""
    return of_replicas(read_trace(trace_of(folder, TITAN, 4, ENVIRONMENT, *arguments, mode=mode)))


@pytest.mark.parametrize("mode", [rest("hash"), "operations"])
def test_fsdp2_with_tensor_parallelism(tmp_path: Path, mode: str) -> None:
    """Ranks 0 and 1 share shards of the data, and have the same norms; so have 2 and 3.

    With a batch of its own for each rank, 1 differs from 0 and 3 from 2, in the same step.
    """
    said = said_of(tmp_path, mode)["sentence"]
    assert said == "no difference; parameters compared: 10, steps: 4"
    found = said_of(tmp_path, mode, "--by-rank")
    # Both differ by the same batch. Whose line is found depends on when FSDP frees what it gathers.
    layer, _, shard = found["tensor"].partition("@")
    assert layer in ("layers.0.norm.weight", "layers.1.norm.weight")
    assert (found["step"], found["ranks"], shard) in ((2, [1], "0"), (2, [3], "1")), found
    log = (tmp_path / "trace-4.log").read_text("utf-8")
    assert "misses" not in log
    assert "Warning" not in log


def recorded(folder: Path, program: Path, ranks: int, *arguments: str) -> list[RankTrace]:
    """The trace of a run."""
    return read_trace(trace_of(folder, program, ranks, ENVIRONMENT, *arguments, mode="hash"))


def test_a_gpt_on_one_rank_and_on_four(tmp_path: Path) -> None:
    one = recorded(tmp_path, GPT, 1)
    two = recorded(tmp_path, GPT, 2)
    for arguments in ((), ("--fsdp",)):
        four = recorded(tmp_path, GPT, 4, *arguments)
        replicas = of_replicas(four)["sentence"]
        assert arguments or replicas == "no difference; parameters compared: 27, steps: 4"
        assert of_runs(one, four)["sentence"].startswith(
            "no difference beyond tolerance; parameters compared: 27, steps: 4"
        )
        assert not of_runs(one, four, two)["differs"]
    hook = f"{GPT}:{line(GPT, 'work = dist.all_reduce')} summed"
    for fault, step, others, place in (
        ("--sum", 0, ": all are 4 times those of the first run", hook),
        ("--shard", 2, "and 26 of 26 others differ", ""),
        ("--unwrapped", 0, "the gradient of 1.weight differs by about ", ""),
    ):
        four = recorded(tmp_path, GPT, 4, fault)
        found = of_runs(one, four)
        assert found["differs"]
        assert (found["step"], found["ranks"]) == (step, [0, 1, 2, 3]), fault
        assert others in found["sentence"]
        assert place in found["other"]
        among = of_replicas(four)
        assert among["differs"] == (fault == "--unwrapped"), fault
        if fault == "--unwrapped":
            assert (among["kind"], among["step"], among["tensor"]) == (
                "not-exchanged", 0, "1.weight",
            )  # fmt: skip
            assert among["ranks"] == [1, 2, 3]
        beside = "among ranks of the second run: the gradient of 1.weight differs: it was not"
        assert any(each.startswith(beside) for each in found["evidence"]) == (
            fault == "--unwrapped"
        )


@pytest.mark.rest
def test_fsdp2_with_tensor_parallelism_on_one_rank_and_on_four(tmp_path: Path) -> None:
    one = recorded(tmp_path, TITAN, 1)
    assert of_runs(one, recorded(tmp_path, TITAN, 4))["sentence"].startswith(
        "no difference beyond tolerance; parameters compared: 11, steps: 4"
    )
    found = of_runs(one, recorded(tmp_path, TITAN, 4, "--by-rank"))
    assert (found["differs"], found["step"]) == (True, 2)
