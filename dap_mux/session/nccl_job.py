"""What NCCL itself knows of a job of this machine's processes."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.cluster.ncclras import ask_ras
from dap_mux.errors import PeerFault
from dap_mux.insight.why.nccl_ras import ras_lines, read_report
from dap_mux.session.outside_view import OutsideRank


async def ask_nccl(ranks: Sequence[OutsideRank], lines: list[str]) -> None:
    """Add lines of evidence, none where the job has no NCCL or that does not answer."""
    said = await ask_ras([one.process.pid for one in ranks])
    if said is None:
        return
    try:
        report = read_report(said)
    except PeerFault as error:
        lines.append(str(error))
    else:
        lines += ras_lines(report, {one.process.pid: one.rank[1] for one in ranks})
