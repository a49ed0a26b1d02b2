"""What is taken home and replayed: programs with their kinds, failures, and changes that part."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

PROGRAMS: Final = Path(__file__).with_name("programs")
WORLD: Final = 4


class Program(NamedTuple):
    """A job that does several kinds of things one after the other.

    `before`: kinds that a job which is not taken does first, whose files are found then.
    """

    name: str
    kinds: tuple[str, ...]
    before: tuple[str, ...] = ()
    engine: str = "torch"


KINDS: Final = {
    "dropout": "DDP with dropout",
    "batch_norm": "DDP with BatchNorm",
    "no_sync": "`no_sync`",
    "join": "uneven inputs, by `join`",
    "loader": "DataLoader with two workers",
    "accumulation": "gradients accumulated, averaged by hand",
    "resumed": "resumed from a checkpoint",
    "objects": "collectives of objects",
    "send_recv": "`send`, `recv`, `recv` from anybody",
    "batched": "`batch_isend_irecv`",
    "groups": "`new_group` with and without the rank",
    "pipeline": "pipeline of torch, a stage a rank",
    "fsdp2": "FSDP2",
    "tp_fsdp2": "tensor parallel × FSDP2 on 2 × 2",
    "gpt": "small GPT, 50 steps",
    "solver": "mpi4py: a solver with halos, requests, `Split`, objects",
}
"""What each is called."""

JOBS: Final = (
    Program(
        "replicas",
        ("dropout", "batch_norm", "no_sync", "join", "loader", "accumulation", "resumed"),
        ("resumed",),
    ),
    Program("messages", ("objects", "send_recv", "batched", "groups", "pipeline")),
    Program("sharded", ("fsdp2", "tp_fsdp2", "gpt")),
    Program("solver", ("solver",), engine="openmpi"),
)


LACKS: Final = {"2.6": ("fsdp2", "tp_fsdp2", "pipeline")}
"""Kinds that fail on CPUs with a release of torch even without dap-mux: FSDP2 needs the events of a
stream, and the ranks of a pipeline wait for each other for ever."""


EVERYTHING: Final = Program(
    "everything",
    tuple(kind for job in JOBS if job.engine == "torch" for kind in job.kinds),
    ("resumed",),
)
"""One seeded case of each kind, for CI."""


class Failure(NamedTuple):
    """How rank 2 fails, and what the replay must say; the line where it is."""

    way: str
    says: str
    line: str


FAILURES: Final = (
    Failure("exception", "RuntimeError: loss was ", "raise RuntimeError"),
    Failure("nan", "ValueError: loss is nan at step 37", "raise ValueError"),
    Failure("kill", "here the record ends", "dist.all_reduce(mean)"),
)


class Change(NamedTuple):
    """A change of `parts.py`: `old` becomes `new`; the `line` of its call has these words.

    `reason`: what is said of it.
    """

    name: str
    old: str
    new: str
    line: str
    step: int = 5
    reason: str = "parted.py is not the file that was run then"


BACKWARD: Final = "loss.backward()"
MISSING: Final = "missing file"
"""It is the same program, and its file that is not there."""
COUNT: Final = "dist.all_reduce(count, group"
CHANGES: Final = (
    Change("changed line", BACKWARD, "(loss * (2 if step == 5 else 1)).backward()", ".backward()"),
    Change("other shape", "torch.ones(3)", "torch.ones(4 if step == 5 else 3)", COUNT),
    Change(
        "extra call",
        "            count =",
        "            step == 5 and dist.barrier()\n            count =",
        "step == 5 and dist.barrier()",
    ),
    Change("missing call", "dist.all_reduce(mean)", "step == 5 or dist.all_reduce(mean)", COUNT),
    Change(
        "other group", "group=mine[0])", "group=mine[step == 5])", "dist.all_reduce(count, group"
    ),
    Change(
        "other dtype",
        "torch.ones(3)",
        "torch.ones(3).to(torch.double if step == 5 else None)",
        COUNT,
    ),
    Change("another seed", "SEED + 7", "SEED + 8", BACKWARD, 0, "random state of torch is another"),
    Change(
        MISSING,
        'Path("scale.txt")',
        'Path("scale.txt")',
        BACKWARD,
        reason="scale.txt, which the rank has read, is not here",
    ),
    Change(
        "the clock",
        "time.time()",
        "(time.time() + 7200)",
        "                dist.barrier()",
        reason="it has read the clock at ",
    ),
    Change(
        "order of threads",
        "for part in parts",
        "for part in parts[:: -1 if step == 5 else 1]",
        BACKWARD,
        reason="threads that it started at ",
    ),
)
