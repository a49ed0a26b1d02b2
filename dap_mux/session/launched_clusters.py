"""The clusters that a launched job meets become part of its session."""

from __future__ import annotations

from pathlib import Path

import anyio

from dap_mux.cluster.met_clusters import MetCluster, met_clusters
from dap_mux.errors import DapMuxError
from dap_mux.session.rank_sources import RankSources
from dap_mux.session.session import Session


async def join_clusters(session: Session, rendezvous: Path) -> None:
    """Follow each cluster that a driver names, until cancelled."""
    async with anyio.create_task_group() as tasks:
        async for cluster in met_clusters(rendezvous):
            tasks.start_soon(_follow, session, cluster)


async def _follow(session: Session, cluster: MetCluster) -> None:
    try:
        cluster.check_python()
        sources = await RankSources.of_source(cluster.named)
    except DapMuxError as error:
        session.tell(f"{error}; its workers run without a debugger")
        cluster.let_driver_go_on()
        return
    sources.announce_ranks(session)
    with anyio.CancelScope() as scope:
        await sources.run(session, scope.cancel)
