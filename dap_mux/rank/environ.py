"""Which rank am I, and at which port: read from the variables that launchers set. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

MONARCH = MONARCH_RANK, MONARCH_SIZE = ("MONARCH_RANK_", "MONARCH_SIZE_")
"""What `monarch exec` puts in front of the names of dimensions."""
_VARIABLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Place:
    """Where this process stands in its job; every number is None where nobody said it."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    local_world_size: int | None = None
    launcher: str | None = None
    # Only where the launcher is a program that lays ranks out itself:
    group: str | None = None
    coords: Mapping[str, int] | None = None


class Launcher(NamedTuple):
    """The names of one launcher's variables, in the order of a place's; "" where it has none."""

    name: str
    rank: str
    world_size: str = ""
    local_rank: str = ""
    local_world_size: str = ""


# The order decides where two apply: a torchrun inside an srun, an mpirun inside an sbatch, any of
# them in a pod. The inner launcher knows better, and SLURM sets its variables in every job step.
# PMIx is what Open MPI and `srun --mpi=pmix` speak below their own names. `{...}` stands for the
# value of another variable.
LAUNCHERS = (
    Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    Launcher(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    Launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    Launcher("PMIx", "PMIX_RANK"),
    Launcher("SLURM", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    Launcher(
        "OpenPAI",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX",
        "PAI_TASK_ROLE_TASK_COUNT_{PAI_CURRENT_TASK_ROLE_NAME}",
    ),
    Launcher("Kubernetes", "JOB_COMPLETION_INDEX"),
)


def place_of(environ: Mapping[str, str]) -> Place:
    """The place that the first launcher with a sensible rank gives, else an empty one.

    What it does not say is taken from the next one that gives the same rank.
    """
    places = [place for each in LAUNCHERS if (place := _read(each, environ)) is not None]
    places += [place for place in [_of_monarch(environ)] if place is not None]
    if not places:
        return Place()
    first, *others = places
    for other in others:
        if other.rank == first.rank:
            first = _filled(first, other)
    return first


def _filled(place: Place, other: Place) -> Place:
    """`place`, its gaps filled by `other`."""
    gaps = {
        name: getattr(other, name)
        for name in ("world_size", "local_rank", "local_world_size", "coords")
        if getattr(place, name) is None
    }
    return replace(place, **gaps)


def _read(launcher: Launcher, environ: Mapping[str, str]) -> Place | None:
    rank, size, local_rank, local_size = (number_in(environ, name) for name in launcher[1:])
    if rank is None or (size is not None and rank >= size):
        return None  # RANK is a common word: somebody else's is not ours
    return Place(rank, size, local_rank, local_size, launcher.name)


def _of_monarch(environ: Mapping[str, str]) -> Place | None:
    """What `monarch exec` tells: a place and a size for each dimension, the outermost first."""
    begins = {name[len(MONARCH_RANK) :] for name in environ if name.startswith(MONARCH_RANK)}
    dims = [name[len(MONARCH_SIZE) :] for name in environ if name.startswith(MONARCH_SIZE)]
    coords, rank, world_size = {}, 0, 1
    for dim in dims:
        at, size = (number_in(environ, f"{each}{dim}") for each in (MONARCH_RANK, MONARCH_SIZE))
        if at is None or size is None or at >= size:
            return None
        coords[dim] = at
        rank, world_size = rank * size + at, world_size * size
    if not dims or begins != set(dims):
        return None
    return Place(rank=rank, world_size=world_size, launcher="Monarch", coords=coords)


def number_in(environ: Mapping[str, str], name: str) -> int | None:
    """Return what a variable says, if it is a number."""
    text = environ.get(_VARIABLE.sub(lambda inner: environ.get(inner[1], ""), name), "")
    return int(text) if text.isascii() and text.isdigit() else None


# Is this process a rank? Asked in every Python that a launcher's job starts, so it is pure.
#
# A rank is the outermost program that runs with the rank which a launcher gave: not the launcher,
# not a helper that it starts (`python -c`, pip), not a child that has inherited the variables.

MARK = "DAP_MUX_RANK_PID"
"""Set in a rank, to its pid: what it starts sees that it is a child."""

# Python programs that start ranks, or that others run on the way.
STARTERS = {"accelerate", "deepspeed", "horovodrun", "mpiexec", "mpirun", "torchrun"}
HELPERS = {"ensurepip", "pip", "pip3", "venv", "virtualenv"}
STARTER_MODULES = (
    "accelerate.commands",
    "deepspeed.launcher",
    "torch.distributed.launch",
    "torch.distributed.run",
)
_WITH_VALUE = "WX"


def claimed_place(
    environ: Mapping[str, str], outer: Mapping[str, str], words: Sequence[str], pid: int
) -> Place | None:
    """The place of the rank that this process is; None where it is none.

    `outer` are the launchers' variables as they were outside the job: a rank number that was
    there already says what `dap-mux run` itself is. `words` are `sys.orig_argv`.
    """
    if is_child(environ, pid) or not _is_program(words):
        return None
    place = place_of(_given(environ, outer))
    return None if place.rank is None else place


def said_place(environ: Mapping[str, str], outer: Mapping[str, str]) -> Place | None:
    """The place that a worker has given itself by setting variables; None before it is whole."""
    place = place_of(_given(environ, outer))
    return None if place.rank is None or place.world_size is None else place


def is_child(environ: Mapping[str, str], pid: int) -> bool:
    """Whether a rank has started this process. A rank that replaces itself (exec) is no child."""
    return environ.get(MARK, str(pid)) != str(pid)


def launcher_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """All variables that launchers say ranks by, as far as they are set."""
    return _given(environ, {})


def _given(environ: Mapping[str, str], outer: Mapping[str, str]) -> dict[str, str]:
    """The variables of those launchers that have said something new since `outer`."""
    given: dict[str, str] = {}
    for launcher in LAUNCHERS:
        names = _names_of(launcher)
        said = {name: environ[name] for name in names if name in environ}
        if said != {name: outer[name] for name in names if name in outer}:
            given.update(said)
    of_monarch = {name: text for name, text in environ.items() if name.startswith(MONARCH)}
    if any(outer.get(name) != text for name, text in of_monarch.items()):
        given.update(of_monarch)
    return given


def _names_of(launcher: Launcher) -> list[str]:
    names = [*launcher[1:]]
    # An `srun` inside a batch script gives its first rank the numbers of the script itself.
    names += ["SLURM_STEP_ID"] if launcher.name == "SLURM" else []
    return [name for name in names if name.isidentifier()]  # "" and "{...}" are none


def program_of(words: Sequence[str]) -> tuple[str, str]:
    """What a Python command line runs: ("-c", code), ("-m", module), ("", script) or ("", "")."""
    rest = iter(words[1:])
    for word in rest:
        if word == "-" or not word.startswith("-"):
            return "", word
        if word.startswith("--"):
            next(rest, "")  # --check-hash-based-pycs is the only one with a program behind it
            continue
        for place, letter in enumerate(word[1:], 2):
            if letter in "cm":
                return f"-{letter}", word[place:] or next(rest, "")
            if letter in _WITH_VALUE:
                if not word[place:]:
                    next(rest, "")
                break
    return "", ""


def _is_program(words: Sequence[str]) -> bool:
    kind, what = program_of(words)
    if kind == "-c" or what in ("", "-"):
        return False
    if kind == "-m":
        return what.split(".")[0] not in HELPERS and not what.startswith(STARTER_MODULES)
    return os.path.basename(what) not in STARTERS | HELPERS  # noqa: PTH119  (cheap at every start)


# Which port is this rank's: asked for, given by the platform, or 5678 + rank.

DEFAULT_BASE_PORT = 5678
LAST_PORT = 65535
PORT_NAME = "DEBUG_PORT_NAME"
# OpenPAI: the ports that a task asked for under `resourcePerInstance.ports`, by their name.
PORT_LIST = "PAI_PORT_LIST_"
PAI_ROLE, PAI_TASK = "PAI_CURRENT_TASK_ROLE_NAME", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"


class NoSuchPort(Exception):
    """`DEBUG_PORT_NAME` leads to no port; the text says why, and what helps."""


def first_port(
    environ: Mapping[str, str], place: Place, port: int | None, base_port: int | None
) -> int:
    """The port to try first: `port`, else `base_port` + rank, else the one `DEBUG_PORT_NAME`
    names, else 5678 + rank. Raises `NoSuchPort`.
    """
    if port is not None:
        return port
    name = environ.get(PORT_NAME, "")
    if base_port is None and name:
        return _named(environ, name, place.local_rank or 0)
    return (base_port or DEFAULT_BASE_PORT) + (place.rank or 0)


def _named(environ: Mapping[str, str], name: str, local_rank: int) -> int:
    """The port that OpenPAI gave this rank under a name; one for each rank of the task."""
    variable = f"{PORT_LIST}{environ.get(PAI_ROLE, '')}_{environ.get(PAI_TASK, '')}_{name}"
    if variable not in environ:
        raise NoSuchPort(
            f"{PORT_NAME} is {name!r}, but {variable} is not set: {_help(environ, name)}"
        )
    ports = [_port(text) for text in environ[variable].split(",")]
    if None in ports:
        raise NoSuchPort(f"{variable} is {environ[variable]!r}, which is not a list of ports")
    if local_rank >= len(ports):
        raise NoSuchPort(
            f"{variable} has {len(ports)} port(s), none for local rank {local_rank}: "
            f"ask for one for each rank under resourcePerInstance.ports ({name}: {local_rank + 1})"
        )
    return ports[local_rank] or 0


def _help(environ: Mapping[str, str], name: str) -> str:
    if PAI_ROLE not in environ:
        return f"that name is looked up on OpenPAI only; elsewhere leave {PORT_NAME} out"
    start = f"{PORT_LIST}{environ[PAI_ROLE]}_{environ.get(PAI_TASK, '')}_"
    names = sorted(each.removeprefix(start) for each in environ if each.startswith(start))
    have = f"it has {', '.join(names)}" if names else "it has none"
    return f"ask for it under resourcePerInstance.ports ({name}: 1); {have}"


def _port(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) <= LAST_PORT else None


# For how long a rank that fails waits for a debugger.

POST_MORTEM = "DAP_MUX_POST_MORTEM"
COMM = "DAP_MUX_COMM"
"""How communication calls are recorded: one of `COMM_MODES`."""
OPERATIONS = "operations"
"""As `hash`, and each operation of torch is written to the trace."""
COMM_MODES = ("off", "time", "finite", "hash", OPERATIONS)
COMM_FILE = "DAP_MUX_COMM_FILE"
"""The folder of the trace: each rank writes what it records to a file there."""
EQUAL = "DAP_MUX_EQUAL"
"""A list in JSON of expressions that the trace has values of, after each step."""
STEP = "DAP_MUX_STEP"
"""`FILE:LINE`, where steps end instead of with an optimizer's."""
OUTPUT_BYTES = "DAP_MUX_OUTPUT_BYTES"
"""How much of its last output a rank keeps for its session, where 4 KB are not enough."""
TAKE, TAKE_TO, TAKE_LIMIT = "DAP_MUX_TAKE", "DAP_MUX_TAKE_TO", "DAP_MUX_TAKE_LIMIT"
"""Ranks that are taken home, numbers and commas; to which file; at most how many bytes."""
TAKE_DATA = "DAP_MUX_TAKE_DATA"
"""Set where the data files that they read are hashed."""
HASH_SEED = "PYTHONHASHSEED"
"""The same in a rank that is taken home, and in its replay: sets have the same order."""
REPLAY = "DAP_MUX_REPLAY"
"""An object in JSON: of each rank that is replayed here, its file. This process is one of them."""
REPLAY_STORE = "DAP_MUX_REPLAY_STORE"
"""A file by which ranks that are replayed together find each other."""
GO_ON = "DAP_MUX_REPLAY_GO_ON"
"""Set where a replay goes on though it sends other values than were sent then."""
REPLAY_AT = "DAP_MUX_REPLAY_AT"
"""Where a replay stops: `31` or `step:31`, `call:8113`, `last`; `@2` behind it: of rank 2."""
DEFAULT_LIMIT_S = 300.0
"""Seconds. Shorter than what collectives of the other ranks wait (gloo 30 min, NCCL 10 min)."""


class Hold(NamedTuple):
    """For how long (s) a failed rank waits for a debugger; 0: only one that is there is shown it.

    `unvisited`: a rank that has never had a debugger; `visited`: one whose debugger has left.
    """

    unvisited: float
    visited: float


SWITCHES: dict[str, Hold | None] = {
    "off": None,
    "no": None,
    "on": Hold(DEFAULT_LIMIT_S, DEFAULT_LIMIT_S),
    "yes": Hold(DEFAULT_LIMIT_S, DEFAULT_LIMIT_S),
    "debugged": Hold(0.0, DEFAULT_LIMIT_S),
}


def hold_of(environ: Mapping[str, str], default: float | None) -> Hold | None:
    """How long a rank waits for a debugger at its end, or None for "do not hold".

    `default`: seconds, where the variable is not set. Raises ValueError.
    """
    text = environ.get(POST_MORTEM, "").strip().lower()
    if text in SWITCHES:
        return SWITCHES[text]
    if not text:
        return None if default is None else Hold(default, default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{POST_MORTEM}={text}: must be a number of seconds, `on` or `off`")
    return Hold(seconds, seconds)
