"""`dap-mux run --take` and `dap-mux replay`: one rank of a job, alone, with what it received."""

from __future__ import annotations

import os
import re
import shlex
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from dap_mux.frontends.cli.execution import load_config
from dap_mux.pure.errors import UsageError
from dap_mux.pure.printable import one_line
from dap_mux.rank.environ import GO_ON, REPLAY, REPLAY_AT, TAKE, TAKE_LIMIT, TAKE_TO
from dap_mux.rank.take.rank_file import NotARankFile, RankFile, place_of
from dap_mux.system.config import RunOptions

MAX_RANKS: Final = 64
UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
HASH_SEED: Final = "PYTHONHASHSEED"


def variables_of(args: Namespace) -> Mapping[str, str]:
    """Return the variables of ranks that are taken home. Raises UsageError."""
    path = Path(args.to or "taken.rank").absolute()
    if path.suffix != ".rank":
        raise UsageError(f"--to {args.to}: the name must end in .rank")
    if not path.parent.is_dir():
        raise UsageError(f"--to {args.to}: there is no folder {path.parent}")
    variables = {TAKE: _ranks(args.take), TAKE_TO: str(path), HASH_SEED: "0"}
    if args.take_limit is not None:
        variables[TAKE_LIMIT] = str(_bytes(args.take_limit))
    return variables


def _ranks(text: str) -> str:
    """Return `2,4-6` as numbers and commas."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        if match is None:
            raise UsageError(f"--take {text}: must be ranks, for example 2 or 2,3 or 0-3")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    if not 0 < len(found) <= MAX_RANKS:
        raise UsageError(f"--take {text}: must be 1 to {MAX_RANKS} ranks")
    return ",".join(map(str, found))


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15})([KMGT]?)", text)
    if match is None or not int(match[1]):
        raise UsageError(f"--take-limit {text}: must be bytes, for example 500M or 2G")
    return int(match[1]) * UNITS[match[2]]


def replay_options(args: Namespace) -> RunOptions:
    """Check the arguments of `replay`. Raises UsageError."""
    path = Path(args.file).absolute()
    try:
        file = RankFile(str(path))
        head = file.head
    except (NotARankFile, OSError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot replay {args.file}: {why}") from None
    config, python = load_config(args), Path(str(head["executable"]))
    if config.python is None and _is_trusted(python):
        config = replace(config, python=python)
    command = tuple(args.program[args.program[:1] == ["--"] :]) or _recorded(head, args.file)
    if command[0] != "-m" and not Path(command[0]).is_file():
        raise UsageError(f"no such file: {command[0]}; to run a module, use -m")
    variables = {REPLAY: str(path), **({GO_ON: "1"} if args.go_on else {})}
    if args.at:
        try:
            place_of(args.at, file)
        except ValueError as error:
            raise UsageError(f"--at {args.at}: {error}") from None
        variables[REPLAY_AT] = args.at
    options = RunOptions(config, command, 1)
    return replace(options, variables=variables)


# The file may be somebody else's: what it names is run only where that is ours anyway.


def _recorded(head: dict[str, Any], file: str) -> tuple[str, ...]:
    """Return the script that a rank ran, with its arguments. Raises UsageError."""
    words, program = _words(head), [*map(str, head["program"])]
    script = Path(program[0]).resolve() if program else Path()
    if words[:1] != ["-m"] and script.is_file() and script.is_relative_to(Path.cwd()):
        return tuple(program)
    ran = shlex.join(words if words[:1] == ["-m"] else program or words)
    raise UsageError(
        f"rank {head['rank']} ran a program that is not in this folder, {one_line(ran)}: name "
        f"yours: dap-mux replay {file} -- train.py"
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
