"""Which rank am I: the variables of each launcher, and those that only look like them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dap_mux.rank.environ import LAUNCHERS, Place, place_of

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
MPICH = {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}
PMIX = {"PMIX_RANK": "3", "PMIX_NAMESPACE": "job.1", "PMIX_HOSTNAME": "n1"}
OPENPAI = {
    "PAI_CURRENT_TASK_ROLE_NAME": "train",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "3",
    "PAI_TASK_ROLE_TASK_COUNT_train": "8",
    "PAI_TASK_ROLE_TASK_COUNT_ps": "2",
}
MONARCH = {
    "MONARCH_RANK_hosts": "1",
    "MONARCH_RANK_gpu": "1",
    "MONARCH_SIZE_hosts": "4",
    "MONARCH_SIZE_gpu": "2",
}
COORDS = {"hosts": 1, "gpu": 1}
INDEXED_JOB = {"JOB_COMPLETION_INDEX": "3"}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        (TORCHRUN, Place(3, 8, 1, 2, "torchrun")),
        (OPEN_MPI, Place(3, 8, 1, 2, "Open MPI")),
        (MPICH, Place(3, 8, 1, 2, "MPICH")),
        (SLURM, Place(3, 8, 1, None, "SLURM")),
        (PMIX, Place(3, launcher="PMIx")),
        (OPENPAI, Place(3, 8, launcher="OpenPAI")),
        (INDEXED_JOB, Place(3, launcher="Kubernetes")),
        (MONARCH, Place(3, 8, launcher="Monarch", coords=COORDS)),
        ({}, Place()),
    ],
)
def test_each_launcher_is_understood(environ: dict[str, str], place: Place) -> None:
    assert place_of({"PATH": "/bin", **environ}) == place


def test_dimensions_of_monarch() -> None:
    """In its own order, the outermost first; whole, or not at all."""
    place = place_of(MONARCH)
    assert place.coords is not None
    assert [*place.coords] == ["hosts", "gpu"]
    assert place_of({**TORCHRUN, **MONARCH}) == Place(3, 8, 1, 2, "torchrun", coords=COORDS)
    assert place_of({**TORCHRUN, "RANK": "2", **MONARCH}).coords is None
    for name in MONARCH:
        assert place_of({**MONARCH, name: "9x"}) == Place()
        assert place_of({key: text for key, text in MONARCH.items() if key != name}) == Place()
    assert place_of({**MONARCH, "MONARCH_RANK_gpu": "2"}) == Place()


def test_the_inner_launcher_is_asked_first() -> None:
    inside_a_batch_job = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    assert place_of({**inside_a_batch_job, **TORCHRUN}).rank == 3
    assert place_of({**inside_a_batch_job, **OPEN_MPI}).rank == 3
    assert place_of({**inside_a_batch_job, **MPICH}).rank == 3
    assert place_of({**inside_a_batch_job, **PMIX}) == Place(3, launcher="PMIx")
    in_the_second_pod = {"JOB_COMPLETION_INDEX": "1"}
    assert place_of({**in_the_second_pod, **TORCHRUN}).rank == 3


def test_launchers_that_agree_on_the_rank_complete_each_other() -> None:
    assert place_of({**PMIX, **SLURM}) == Place(3, 8, 1, None, "PMIx")  # srun --mpi=pmix
    assert place_of({"RANK": "3", **SLURM}) == Place(3, 8, 1, None, "torchrun")
    assert place_of({"RANK": "2", **SLURM}) == Place(2, launcher="torchrun")
    assert place_of({**TORCHRUN, **INDEXED_JOB}) == place_of(TORCHRUN)


def test_a_rank_alone_is_enough() -> None:
    assert place_of({"RANK": "3"}) == Place(rank=3, launcher="torchrun")


@pytest.mark.parametrize("rank", ["", "-1", "general", "1.5", "٣", "8"])
def test_somebody_elses_variable_is_passed_over(rank: str) -> None:
    assert place_of({"RANK": rank, "WORLD_SIZE": "8"}) == Place()
    assert place_of({"RANK": rank, "WORLD_SIZE": "8", **SLURM}).launcher == "SLURM"


VARIABLES = [
    name.replace("{PAI_CURRENT_TASK_ROLE_NAME}", "")
    for row in LAUNCHERS
    for name in (row.rank, row.world_size, row.local_rank, row.local_world_size)
    if name
]


@settings(deadline=None)  # a busy machine is no wrong answer
@given(st.dictionaries(st.sampled_from(VARIABLES), st.text(max_size=3) | st.sampled_from("0123")))
def test_any_environment_gives_a_rank_inside_its_world_or_none(environ: dict[str, str]) -> None:
    place = place_of(environ)
    assert (place.rank is None) == (place.launcher is None)
    if place.rank is not None:
        assert place.rank >= 0
        assert place.world_size is None or place.rank < place.world_size
