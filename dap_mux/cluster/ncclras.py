"""`ncclras`, which asks the ranks of an NCCL job for what each has launched (NCCL's RAS)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import anyio

from dap_mux import procfs

NAME: Final = "ncclras"
LIBRARY: Final = b"libnccl"
ADDRESS: Final = "NCCL_RAS_ADDR"
TIMEOUT_S: Final = 3
"""It waits so long for ranks that do not answer."""
MAX_BYTES: Final = 32 << 20


async def ask_ras(pids: Sequence[int]) -> bytes | None:
    """Return what it prints of the job of these processes; None without NCCL, or no answer."""
    program = shutil.which(NAME)
    if program is None or not any(map(_has_nccl, pids)):
        return None
    command = [program, "-f", "json", "-t", str(TIMEOUT_S), *_address(pids[0])]
    with suppress(OSError), anyio.move_on_after(TIMEOUT_S + 1):
        done = await anyio.run_process(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        if done.returncode == 0 and len(done.stdout) <= MAX_BYTES:
            return done.stdout
    return None


def _has_nccl(pid: int) -> bool:
    with suppress(OSError):
        return LIBRARY in procfs.mappings(pid)
    return False


def _address(pid: int) -> list[str]:
    host, colon, port = procfs.environ(pid).get(ADDRESS, "").rpartition(":")
    return ["-h", host, "-p", port] if colon and host and port.isdecimal() else []
