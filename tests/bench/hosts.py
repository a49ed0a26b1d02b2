"""`python -m tests.bench.hosts`: seconds that `why` takes for 16 hosts of 8 ranks, as root.

Hosts are network namespaces of this machine, each with a real sshd; no limit is checked.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from tests.support.hosts.hosts import Host, namespaces, route_between
from tests.support.hosts.ssh_hosts import servers
from tests.support.processes.waiting import until

HOSTS: Final = 16
RANKS: Final = 8
TIMES: Final = 3
LIMIT: Final = 120.0  # s; not a wait
PROGRAM: Final = Path(__file__).parents[1] / "launchers/scripts/unprepared_sockets.py"


async def main() -> None:
    """Print how long each of three looks has taken, the exit code, and the load."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hosts = stack.enter_context(namespaces(folder, HOSTS))
        route_between(hosts)
        environ = (await stack.enter_async_context(servers(hosts, folder))).environ
        log = folder / "log"
        ranks = [await start(rank, hosts, log) for rank in range(HOSTS * RANKS)]
        try:
            await until(lambda: "sleeps" in log.read_text("utf-8"), within=LIMIT, what="asleep")
            words = ["why", *(f"ssh:{host.name}" for host in hosts)]
            for _ in range(TIMES):
                began = time.monotonic()
                asked = await asyncio.create_subprocess_exec(
                    *[sys.executable, "-m", "dap_mux", *words], env={**os.environ, **environ}
                )
                code = await asked.wait()
                taken = time.monotonic() - began
                print(f"{taken:.1f} s, exit code {code}, load {os.getloadavg()[0]:.1f}", flush=True)
        finally:
            for rank in ranks:
                if rank.returncode is None:
                    rank.kill()
                await rank.wait()


async def start(rank: int, hosts: list[Host], log: Path) -> asyncio.subprocess.Process:
    """Start a rank on its host; rank 2 will sleep."""
    place = {"RANK": str(rank), "WORLD_SIZE": str(len(hosts) * RANKS)}
    place |= {"MASTER_ADDR": hosts[0].address, "MASTER_PORT": "29500"}
    enter = ["nsenter", f"--net=/run/netns/{hosts[rank // RANKS].namespace}"]
    with log.open("ab") as out:
        return await asyncio.create_subprocess_exec(
            *enter, sys.executable, str(PROGRAM), "2", env={**os.environ, **place}, stdout=out
        )


if __name__ == "__main__":
    asyncio.run(main())
