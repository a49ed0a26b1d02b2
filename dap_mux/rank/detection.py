"""Is this process a rank? Asked in every Python that a launcher's job starts, so it is pure.

A rank is the outermost program that runs with the rank which a launcher gave: not the launcher,
not a helper that it starts (`python -c`, pip), not a child that has inherited the variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from dap_mux.rank.environ import LAUNCHERS, MONARCH, Launcher, Place, place_of

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
    names = [
        launcher.rank,
        launcher.world_size,
        launcher.local_rank,
        launcher.local_world_size,
    ]
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
