"""`dap-mux run --take` and `dap-mux replay`: one rank of a job, alone, with what it received."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from dap_mux.frontends.cli.execution import load_config
from dap_mux.pure.errors import UsageError
from dap_mux.rank.environ import GO_ON, HASH_SEED, TAKE, TAKE_DATA, TAKE_LIMIT, TAKE_TO
from dap_mux.session.replayed_rank import Replay
from dap_mux.system.config import RunOptions

MAX_RANKS: Final = 64
UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def variables_of(args: Namespace) -> Mapping[str, str]:
    """Return the variables of ranks that are taken home. Raises UsageError."""
    path = Path(args.to or "taken.rank").absolute()
    if path.suffix != ".rank":
        raise UsageError(f"--to {args.to}: the name must end in .rank")
    if not path.parent.is_dir():
        raise UsageError(f"--to {args.to}: there is no folder {path.parent}")
    variables = {TAKE: _ranks(args.take), TAKE_TO: str(path), HASH_SEED: "0"}
    if args.take_data:
        variables[TAKE_DATA] = "1"
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
    config = load_config(args)
    name = f"dap-mux replay {' '.join(args.files)} -- train.py"
    files, given = [*map(Path, args.files)], args.launcher
    replay = Replay.of(files, given, Path.cwd(), name=name, at=args.at or "")
    if config.python is None:
        config = replace(config, python=replay.python)
    variables = {**replay.variables, **({GO_ON: "1"} if args.go_on else {})}
    options = RunOptions(config, replay.command, world_size=replay.world, only=replay.ranks)
    return replace(options, variables=variables)
