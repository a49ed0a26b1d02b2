"""Say that this rank listens: one record of a ranks file, and a line on stderr."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from dap_mux.rank.environ import Place

DEFAULT_GROUP = "job"
EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  (read, not bound)
RENDEZVOUS = "DAP_MUX_RENDEZVOUS"
STACKS = ".stacks"
"""The end of the name of the socket on which a rank tells its stacks (`stack_answers`)."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def record_of(
    place: Place, host: str, port: int, traits: Mapping[str, object]
) -> dict[str, object]:
    """This rank's entry of a ranks file; a host that others can reach, where it has one.

    `traits`: more fields, of what a framework knows (`userThreads`).
    """
    return {
        **traits,
        "group": place.group or os.environ.get("DAP_MUX_GROUP") or DEFAULT_GROUP,
        "rank": place.rank,
        "host": socket.gethostname() if host in EVERY_ADDRESS else host,
        "port": port,
        "pid": os.getpid(),
        "coords": place.coords,
        "world_size": place.world_size,
    }


def write_ready_file(path: Path, record: dict[str, object]) -> None:
    """Write `record` so that a reader sees all of it or no file at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(record) + "\n", encoding="utf-8")
    partial.replace(path)


def failure_file(ready_file: Path) -> Path:
    """Where a process says what it is about to fail of, beside the file that says it listens."""
    return ready_file.with_suffix(".failed")


def rendezvous_file(folder: Path) -> Path:
    """This process's own file in the folder that `DAP_MUX_RENDEZVOUS` names: by host and pid."""
    return folder / f"{socket.gethostname()}-{os.getpid()}.json"


def say(place: Place, message: str) -> None:
    """One line to the user. stderr, because stdout belongs to the program.

    In one piece, for other ranks may write there as well.
    """
    print(f"dap-mux: {name_of(place)} {message}\n", end="", file=sys.stderr, flush=True)  # noqa: T201


def name_of(place: Place) -> str:
    if place.rank is None:
        return "this process"
    if place.world_size is None:
        return f"rank {place.rank}"
    return f"rank {place.rank} of {place.world_size}"
