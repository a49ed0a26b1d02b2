"""The cost of starting our commands."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.figures import Figure, shown
from tests.bench.processes import helper, proxy, until

TIMES: Final = 15
RANKS: Final = 4
LIBRARIES: Final = "import asyncio, msgspec, uvloop"
ADAPTER_BOUND: Final = 0.120  # s
LIST_BOUND: Final = 0.150  # s
_LOOK_AGAIN: Final = 0.001  # s
_CPU_CLOCK: Final = 2  # of a process, as Linux numbers them
_KEEPS_NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"  # then each start compiles what it imports


def startup() -> Iterator[Figure]:
    """What starting costs: the adapter until it listens, and `dap-mux list` of a session.

    CPU, user and system, above that of a bare interpreter, which is started in turns with them;
    medians count. Beside the adapter stands what the libraries alone cost that it cannot do
    without.
    """
    with helper("fake_ranks", RANKS) as (_, ports), proxy(ports) as session:
        listing = ("-m", "dap_mux", "list", f"127.0.0.1:{session.port}")
        used = [
            (
                _until_ended("-c", "pass"),
                _until_ended("-c", LIBRARIES),
                _until_listening(),
                _until_ended(*listing),
            )
            for _ in range(1 + TIMES)
        ]
    bare, libraries, adapter, listed = (median(column) for column in zip(*used[1:], strict=True))
    starts = {"the adapter": (adapter, ADAPTER_BOUND), "`dap-mux list`": (listed, LIST_BOUND)}
    for name, (cpu, bound) in starts.items():
        more = cpu - bare
        yield Figure(
            f"CPU of starting {name}",
            shown(more),
            f"above {shown(bare)} python",
            bound=f"<= {shown(bound)}",
            held=more <= bound,
        )
    floor = libraries - bare
    ratio = f"{(adapter - bare) / floor:.2f} x"
    yield Figure(
        "CPU of starting the adapter", shown(adapter - bare), f"libraries {shown(floor)}", ratio
    )


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name != _KEEPS_NO_BYTECODE}


def _until_ended(*arguments: str) -> float:
    command: Sequence[str] = [sys.executable, *arguments]
    nothing, environment = subprocess.DEVNULL, _environment()
    with subprocess.Popen(
        command, stdin=nothing, stdout=nothing, cwd="/", env=environment
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{arguments}: {process.returncode}"
    return usage.ru_utime + usage.ru_stime


def _until_listening() -> float:
    """Its session file has the port, so it is there once the adapter listens."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "dap_mux", "adapter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,  # here is a pyproject.toml, which takes 5 ms to read
            env={**_environment(), "XDG_RUNTIME_DIR": folder},
        )
        with process:
            file = Path(folder, "dap-mux", f"{process.pid}.json")
            until(file.exists, "it listened", process, look_again=_LOOK_AGAIN)
            cpu = time.clock_gettime((~process.pid << 3) | _CPU_CLOCK)
            process.kill()
    return cpu
