"""torch's flight recorder is on in jobs that we start, unless the user has said otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dap_mux.cluster.launcher import LauncherJob
from dap_mux.cluster.local import LocalJob

NAMES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def sizes(env: Mapping[str, str | None]) -> list[dict[str, str]]:
    """The variables in both kinds of jobs."""
    local = LocalJob(command=("train.py",), world_size=2, log_dir=Path(), env=env)
    launched = LauncherJob(command=("torchrun", "train.py"), env=env)
    environs = (local.environment(1, 29500), launched.environment(Path("/nowhere")))
    return [{name: each[name] for name in NAMES if name in each} for each in environs]


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({}, {"TORCH_FR_BUFFER_SIZE": "2000"}),
        ({"TORCH_FR_BUFFER_SIZE": "0"}, {"TORCH_FR_BUFFER_SIZE": "0"}),
        ({"TORCH_NCCL_TRACE_BUFFER_SIZE": "5"}, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "5"}),
        ({"TORCH_FR_BUFFER_SIZE": None}, {}),
    ],
)
def test_of_a_launch_configuration(env: dict[str, str | None], told: dict[str, str]) -> None:
    assert sizes(env) == [told, told]


def test_of_the_user_s_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "7")
    assert sizes({}) == [{"TORCH_FR_BUFFER_SIZE": "7"}] * 2
