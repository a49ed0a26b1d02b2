"""The clusters that a launched job meets; its driver names each in the rendezvous folder."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from dap_mux.cluster.endpoints import NamedRanks
from dap_mux.cluster.framework_source import FrameworkSource
from dap_mux.cluster.source import SourceSpec
from dap_mux.errors import Refused, UsageError
from dap_mux.private_files import startable
from dap_mux.user_files import parse_json, read_regular

logger = logging.getLogger("dap_mux.session")
POLL_INTERVAL_S: Final = 0.1


@dataclass(frozen=True)
class MetCluster:
    """A cluster whose driver waits for the session to join it."""

    named: NamedRanks
    joined: Path
    python: Path

    def check_python(self) -> None:
        """Raise Refused where the driver's Python may be another user's program."""
        if startable(self.python) is None:
            raise Refused(
                f"the driver's Python {self.python} is not started: it, or a folder above it, "
                "belongs to another user or is writable by everybody"
            )

    def let_driver_go_on(self) -> None:
        """The driver waits no longer."""
        with suppress(OSError):  # the job has ended, and its folder is gone
            self.joined.touch()


async def met_clusters(rendezvous: Path) -> AsyncIterator[MetCluster]:
    """Yield each cluster as its driver names it."""
    seen: set[Path] = set()
    while True:
        for path in _named(rendezvous) - seen:
            seen.add(path)
            try:
                found = _read(path)
            except (OSError, ValueError, UsageError) as error:  # a program of the job wrote it
                logger.warning("no cluster is named in %s: %s", path.name, error)
                continue
            yield found
        await anyio.sleep(POLL_INTERVAL_S)


def _named(rendezvous: Path) -> set[Path]:
    return set(rendezvous.glob("*.cluster"))


def _read(path: Path) -> MetCluster:
    entry = parse_json(read_regular(path))
    if not isinstance(entry, dict) or not isinstance(entry.get("endpoint"), str):
        raise UsageError("it is not an object with an endpoint")
    joined = path.with_suffix(".joined")
    scheme, _, address = str(entry.get("endpoint")).partition(":")
    options = {"driver": entry.get("pid"), "joined": str(joined)}
    python = Path(str(entry.get("python")))
    word = SourceSpec(scheme, address, python, options)
    return MetCluster(NamedRanks(word=str(word), source=FrameworkSource(word)), joined, python)
