"""Traces that `run --comm-file` has written."""

from __future__ import annotations

from pathlib import Path

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.numerics.diverge_trace import RankTrace, lines_of


def read_trace(folder: Path) -> list[RankTrace]:
    """Read the files of all ranks. Raises DapMuxError for what is no trace."""
    if not folder.is_dir():
        raise DapMuxError(f"{folder}: no folder that `run --comm-file` has written")
    files = sorted(folder.glob("rank-*.jsonl"))
    if not files:
        raise DapMuxError(
            f"{folder}: no trace in it: no rank has imported torch.distributed or mpi4py, or none "
            "was told to record by --comm hash --comm-file"
        )
    traces = []
    for file in files:
        number = file.stem.partition("-")[2]
        if not (number.isdecimal() and len(number) < 20):
            raise DapMuxError(f"{file}: no trace: the name is not that of a rank")
        traces.append(RankTrace(int(number), lines_of(file.read_bytes(), str(file))))
    return sorted(traces, key=lambda trace: trace.rank)
