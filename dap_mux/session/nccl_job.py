"""What NCCL itself knows of a job of this machine's processes, by `ncclras` (NCCL's RAS)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import anyio

from dap_mux import procfs
from dap_mux.errors import PeerFault
from dap_mux.insight.why.nccl_ras import ras_lines, read_report
from dap_mux.session.outside_view import OutsideRank

_NAME: Final = "ncclras"
_LIBRARY: Final = b"libnccl"
_ADDRESS: Final = "NCCL_RAS_ADDR"
_TIMEOUT_S: Final = 3
"""It waits so long for ranks that do not answer."""
_MAX_BYTES: Final = 32 << 20


async def ask_nccl(ranks: Sequence[OutsideRank], lines: list[str]) -> None:
    """Add lines of evidence, none where the job has no NCCL or that does not answer."""
    said = await _ask_ras([one.process.pid for one in ranks])
    if said is None:
        return
    try:
        report = read_report(said)
    except PeerFault as error:
        lines.append(str(error))
    else:
        lines += ras_lines(report, {one.process.pid: one.rank[1] for one in ranks})


async def _ask_ras(pids: Sequence[int]) -> bytes | None:
    """Return what it prints of the job of these processes; None without NCCL, or no answer."""
    program = shutil.which(_NAME)
    if program is None or not any(map(_has_nccl, pids)):
        return None
    command = [program, "-f", "json", "-t", str(_TIMEOUT_S), *_address(pids[0])]
    with suppress(OSError), anyio.move_on_after(_TIMEOUT_S + 1):
        done = await anyio.run_process(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        if done.returncode == 0 and len(done.stdout) <= _MAX_BYTES:
            return done.stdout
    return None


def _has_nccl(pid: int) -> bool:
    with suppress(OSError):
        return _LIBRARY in procfs.mappings(pid)
    return False


def _address(pid: int) -> list[str]:
    host, colon, port = procfs.environ(pid).get(_ADDRESS, "").rpartition(":")
    return ["-h", host, "-p", port] if colon and host and port.isdecimal() else []
