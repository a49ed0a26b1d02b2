"""What a replay runs: the program that a rank's file names, where that is ours anyway."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from dap_mux.pure.errors import UsageError
from dap_mux.pure.printable import one_line
from dap_mux.rank.environ import HASH_SEED, REPLAY, REPLAY_AT
from dap_mux.rank.take.rank_file import NotARankFile, RankFile, place_of


class Replay(Struct, frozen=True):
    """One process. `python`: that of the rank, where it is here and nobody else may write to it."""

    command: tuple[str, ...]
    variables: Mapping[str, str]
    python: Path | None

    @classmethod
    def of(
        cls, file: Path, given: tuple[str, ...], folder: Path, *, name: str, at: str = ""
    ) -> Replay:
        """Read a file; without a program `given`, what the rank ran, if that is in the folder.

        `at`: where it is to stop; `name`: how the user gives a program. Raises UsageError.
        """
        path = folder / file
        try:
            record = RankFile(str(path))
        except (NotARankFile, OSError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot replay {file}: {why}") from None
        command = given or _recorded(record.head, folder, name)
        if command[0] != "-m" and not (folder / command[0]).is_file():
            raise UsageError(f"no such file: {command[0]}; to run a module, use -m")
        python = Path(str(record.head["executable"]))
        variables = {REPLAY: str(path), HASH_SEED: "0"}
        if at:
            try:
                place_of(at, record)
            except ValueError as error:
                raise UsageError(f"cannot stop at {at}: {error}") from None
            variables[REPLAY_AT] = at
        return cls(command, variables, python if _is_trusted(python) else None)


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
