"""Real, unmodified debugpy ranks for measurements: a script that calls `debugpy.listen` itself."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anyio.from_thread import start_blocking_portal

from tests.support.processes.ranks import debugpy_ranks

STOP_LINE: Final = 12
_SCRIPT: Final = """\
import os
import time

import debugpy

if "DEBUGPY_PORT" in os.environ:  # else it is run under our agent, which listens
    debugpy.listen(("127.0.0.1", int(os.environ["DEBUGPY_PORT"])))


def step(number):
    loss = number * 0.5
    return loss


number = 0
while True:
    number += 1
    step(number)
    time.sleep(0.05)
"""


@dataclass(frozen=True)
class RealRanks:
    """Where they listen, and the script they run."""

    ports: list[int]
    path: str


@contextmanager
def real_ranks(count: int) -> Iterator[RealRanks]:
    """Run ranks that are ready to be attached, each started before the block begins."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, start_blocking_portal() as portal:
        script = Path(folder) / "train.py"
        script.write_text(_SCRIPT, "utf-8")
        running = debugpy_ranks(count, script, style="script")
        with portal.wrap_async_context_manager(running) as ranks:
            yield RealRanks([rank.port for rank in ranks], str(script))
