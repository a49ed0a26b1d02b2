"""What a replay runs: the program that a rank's file names, where that is ours anyway."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from dap_mux.pure.errors import UsageError
from dap_mux.pure.printable import one_line
from dap_mux.rank.environ import HASH_SEED, REPLAY, REPLAY_AT
from dap_mux.rank.take.rank_file import NotARankFile, RankFile, place_of, rank_of

MAX_WORLD: Final = 1_000_000
BEHIND: Final = "; a program comes behind `--`"


class Replay(Struct, frozen=True):
    """The processes of `ranks`, of a job that had `world`.

    `python`: that of the first, where it is here and nobody else may write to it.
    """

    command: tuple[str, ...]
    variables: Mapping[str, str]
    python: Path | None
    world: int
    ranks: tuple[int, ...]

    @classmethod
    def of(
        cls,
        files: Sequence[Path],
        given: tuple[str, ...],
        folder: Path,
        *,
        name: str,
        at: str = "",
    ) -> Replay:
        """Read the files; without a program `given`, what the first ran, if that is in the folder.

        `at`: where it is to stop; `name`: how the user gives a program. Raises UsageError.
        """
        records = {folder / file: _read(folder / file, file) for file in files}
        first = next(iter(records.values()))
        command = given or _recorded(first.head, folder, name)
        if command[0] != "-m" and not (folder / command[0]).is_file():
            raise UsageError(f"no such file: {command[0]}; to run a module, use -m")
        python = Path(str(first.head["executable"]))
        by_rank = _by_rank(records)
        variables = {REPLAY: json.dumps(by_rank), HASH_SEED: "0"}
        if at:
            _check(at, [*records.values()])
            variables[REPLAY_AT] = at
        trusted = python if _is_trusted(python) else None
        return cls(command, variables, trusted, first.head["world"], (*sorted(by_rank),))


def _read(path: Path, shown: Path) -> RankFile:
    try:
        record = RankFile(str(path))
    except (NotARankFile, OSError) as error:
        why = getattr(error, "strerror", None) or error
        meant = "" if shown.suffix == ".rank" else BEHIND
        raise UsageError(f"cannot replay {shown}: {why}{meant}") from None
    rank, world = record.head["rank"], record.head["world"]
    if not 0 <= rank < world <= MAX_WORLD:
        raise UsageError(f"cannot replay {shown}: it is of rank {rank} of {world}")
    return record


def _by_rank(records: Mapping[Path, RankFile]) -> dict[int, str]:
    """Return the file of each rank. Raises UsageError where they are not of one job."""
    found: dict[int, str] = {}
    jobs: dict[tuple[object, ...], Path] = {}
    for path, record in records.items():
        head = record.head
        rank = head["rank"]
        if rank in found:
            raise UsageError(f"{path} is of rank {rank}, as {found[rank]} is")
        found[rank] = str(path)
        jobs.setdefault((head["world"], head["digest"], *map(str, head["program"])), path)
    if len(jobs) > 1:
        raise UsageError(f"{' and '.join(map(str, jobs.values()))} are not of the same job")
    return found


def _check(at: str, records: list[RankFile]) -> None:
    """Raise UsageError for a place that no rank here has."""
    try:
        rank = rank_of(at)
        led = [each for each in records if rank in (None, each.head["rank"])]
        if not led:
            raise ValueError(f"no file is of rank {rank}")
        place_of(at, led[0])
    except ValueError as error:
        raise UsageError(f"cannot stop at {at}: {error}") from None


# The file may be somebody else's: what it names is run only where that is ours anyway.


def _recorded(head: dict[str, Any], folder: Path, name: str) -> tuple[str, ...]:
    """Return the script that a rank ran, with its arguments. Raises UsageError."""
    words, program = _words(head), [*map(str, head["program"])]
    script = (folder / program[0]).resolve() if program else Path()
    if words[:1] != ["-m"] and script.is_file() and script.is_relative_to(folder.resolve()):
        return tuple(program)
    ran = shlex.join(words if words[:1] == ["-m"] else program or words)
    raise UsageError(
        f"rank {head['rank']} ran a program that is not in this folder, {one_line(ran)}: name "
        f"yours: {name}"
    )


def _words(head: dict[str, Any]) -> list[str]:
    """Return what was behind the options of Python."""
    words = [*map(str, head["argv"])][1:]
    while words and words[0][:1] == "-" and words[0] != "-m":
        del words[: 2 if words[0] in ("-W", "-X") else 1]
    return words


def _is_trusted(program: Path) -> bool:
    """Whether nobody but us or root can have put this program there, or its environment."""
    folder = program.parent
    try:
        found = [each.stat() for each in (program.resolve(strict=True), folder, folder.parent)]
    except (OSError, ValueError):
        return False
    owners = {0, os.getuid()} if hasattr(os, "getuid") else {each.st_uid for each in found}
    ours = all(each.st_uid in owners and not each.st_mode & 0o022 for each in found)
    return ours and program.is_file()
