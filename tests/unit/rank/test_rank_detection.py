"""Which processes of a launcher's job are ranks."""

from __future__ import annotations

import pytest

from dap_mux.rank.environ import LAUNCHERS, MARK, Place, claimed_place, program_of, said_place
from dap_mux.rank.hook import sitecustomize
from dap_mux.rank.injected.evidence import flight_recorder

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}
SLURM = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}
PID = 77


def rank_of(environ: dict[str, str], words: str, outer: dict[str, str] | None = None) -> int | None:
    place = claimed_place(environ, outer or {}, words.split(), PID)
    return place.rank if place else None


@pytest.mark.parametrize(
    ("words", "program"),
    [
        ("python train.py -m x", ("", "train.py")),
        ("python -u -X dev -W ignore train.py", ("", "train.py")),
        ("python -Wignore -Xdev -m package.train -c", ("-m", "package.train")),
        ("python -um package", ("-m", "package")),
        ("python -mpackage", ("-m", "package")),
        ("python -Ic pass", ("-c", "pass")),
        ("python --check-hash-based-pycs never train.py", ("", "train.py")),
        ("python -", ("", "-")),
        ("python -i", ("", "")),
        ("python", ("", "")),
        ("python -W", ("", "")),
    ],
)
def test_what_a_command_line_runs(words: str, program: tuple[str, str]) -> None:
    assert program_of(words.split()) == program


@pytest.mark.parametrize(
    ("words", "rank"),
    [
        ("python train.py", 3),
        ("/venv/bin/python -u train.py --epochs 3", 3),
        ("python -m package.train", 3),
        ("python /venv/bin/pytest", 3),
        ("python -c pass", None),
        ("python", None),
        ("python -", None),
        ("python -m pip install numpy", None),
        ("python /venv/bin/pip list", None),
        ("python -m venv x", None),
        ("python /venv/bin/torchrun train.py", None),
        ("python -m torch.distributed.run train.py", None),
        ("python -m torch.distributed.launch train.py", None),
        ("python -m accelerate.commands.launch train.py", None),
    ],
)
def test_programs_are_ranks_and_launchers_and_helpers_are_not(words: str, rank: int | None) -> None:
    assert rank_of(TORCHRUN, words) == rank


def test_a_rank_is_the_outermost_program() -> None:
    assert rank_of({**TORCHRUN, MARK: "76"}, "python worker.py") is None
    assert rank_of({**TORCHRUN, MARK: str(PID)}, "python train.py") == 3  # by exec
    assert rank_of({}, "python train.py") is None


def test_numbers_from_outside_the_job_are_nobodys() -> None:
    """A batch script, or a pod, has a number of its own."""
    assert rank_of(SLURM, "python spawns.py", outer=SLURM) is None
    assert rank_of({**SLURM, **OPEN_MPI}, "python train.py", outer=SLURM) == 2
    pod = {"RANK": "1", "WORLD_SIZE": "2"}
    assert rank_of({**pod, **OPEN_MPI}, "python train.py", outer=pod) == 2
    assert rank_of({**pod, **TORCHRUN}, "python train.py", outer=pod) == 3
    assert rank_of({**SLURM, "SLURM_STEP_ID": "0"}, "python train.py", outer=SLURM) == 0


def test_a_worker_says_its_rank_in_full() -> None:
    assert said_place({"RANK": "1"}, {}) is None
    assert said_place({"WORLD_SIZE": "2"}, {}) is None
    assert said_place({"RANK": "1", "WORLD_SIZE": "2"}, {}) == Place(1, 2, launcher="torchrun")


def test_what_cannot_import_the_table_looks_for_the_same_variables() -> None:
    names = [launcher.rank for launcher in LAUNCHERS]
    assert set(names) == sitecustomize.RANK_VARIABLES
    assert names == [*flight_recorder.RANKS]
    first = LAUNCHERS[0]
    assert (first.rank.encode(), first.world_size.encode()) == sitecustomize.SET_BY_WORKERS
    assert sitecustomize.MARK == MARK
