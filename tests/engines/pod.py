"""The pod of the OpenShift walkthrough: its folder /workspace, its script, its four ranks."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.engines.tools import environment
from tests.support.proc_net import free_ports
from tests.support.ranks import Rank, debugpy_ranks

SCRIPT: Final = "test_debug.py"
SOURCE: Final = Path(__file__).resolve().parents[2] / "examples/openshift" / SCRIPT
CUDA, GPU, MATMUL, AFTER = 11, 16, 20, 21  # lines, as the page has them


class Pod:
    """Its ranks listen from `port` on; `workspace` is the user's own folder with the same files."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work" / "workspace"
        self.remote = folder / "pod" / "workspace"
        for place in (self.workspace, self.remote):
            place.mkdir(parents=True)
            shutil.copy(SOURCE, place)
        self.port = free_ports(4)

    @property
    def mappings(self) -> list[dict[str, Any]]:
        """`pathMappings` as the page has them."""
        return [{"localRoot": str(self.workspace), "remoteRoot": str(self.remote)}]

    @asynccontextmanager
    async def ranks(self) -> AsyncIterator[list[Rank]]:
        """Step 6, once for each GPU: the script waits for a debugger."""
        python = environment("torch") / "python"
        env = {"DEBUG_PORT": str(self.port), "OMP_NUM_THREADS": "1", "PYTHON": str(python)}
        script = self.remote / SCRIPT
        async with debugpy_ranks(4, script, base_port=self.port, style="script", env=env) as ranks:
            yield ranks


async def finished(ranks: list[Rank]) -> None:
    """Every rank has run to its end, with the right result."""
    for rank in ranks:
        assert await rank.ended(within=60) == 0, rank.output
        assert f"Result: (1000, 1000) of {1000 * (rank.rank + 1)}" in rank.output
