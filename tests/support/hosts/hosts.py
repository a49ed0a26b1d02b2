"""Two hosts on one machine, whose ranks have the same program in other folders.

Without rights, hosts are loopback addresses and folders. With root's they are network namespaces
that each see their own folder under one name, `…/seen`, which is empty for everybody else, and
nothing of `…/laptop`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dap_mux.pure.endpoint import Endpoint
from tests.support.hosts.private_network import ip, logged, plug_in, private_network
from tests.support.processes.waiting import until

_START: Final = 60.0  # s; a limit, not a wait
_BASE: Final = 5678
_FOREIGN: Final = ("RANK", "WORLD_SIZE", "LOCAL_", "DAP_MUX_", "DEBUG", "PYDEVD")
# Under its own view of the files, which the process keeps for itself.
_SEES: Final = """
mount --bind "$0" "$1" && mount --bind "$2" "$3" && shift 3 && exec "$@"
"""


@dataclass
class Host:
    """`folder` is where its files are, `seen` where its processes find them.

    `namespace` is "" where it has none.
    """

    name: str
    address: str
    folder: Path
    seen: Path
    namespace: str = ""

    @property
    def near_address(self) -> str:
        """The test's own address on the cable to this host."""
        return f"{self.address.rpartition('.')[0]}.1"

    def falls_silent(self) -> None:
        """From now on whatever the test's network sends to it is lost."""
        nobody = ("lladdr", "02:00:00:00:00:01", "nud", "permanent")
        ip("neigh", "replace", self.address, *nobody, "dev", f"near-{self.name}")

    def command(self, *words: str) -> list[str]:
        """What runs these words there."""
        if not self.namespace:
            return [*words]
        laptop, nothing = self.seen.parent / "laptop", self.seen.parent / "nothing"
        views = map(str, (self.folder, self.seen, nothing, laptop))
        return ["ip", "netns", "exec", self.namespace, "sh", "-c", _SEES, *views, *words]


@dataclass
class FarRank:
    """A rank on a host."""

    rank: int
    host: Host
    process: asyncio.subprocess.Process
    log: Path
    record: dict[str, object] = field(default_factory=dict)

    @property
    def endpoint(self) -> Endpoint:
        """As a session knows it."""
        port = int(str(self.record["port"]))
        return Endpoint(self.host.address, port, host_name=self.host.name, ready=True)


def folders(base: Path) -> list[Host]:
    """Two hosts that differ in address and folder only."""
    made = []
    for number in (1, 2):
        folder = base / f"node{number}"
        folder.mkdir()
        made.append(Host(f"node{number}", f"127.0.0.{number}", folder, folder))
    return made


@contextmanager
def namespaces(base: Path, count: int = 2) -> Iterator[list[Host]]:
    """Hosts with networks and files of their own; the whole test moves to another network."""
    seen = base / "seen"
    for folder in (seen, base / "laptop", base / "nothing"):
        folder.mkdir()
    hosts = [
        Host(f"node{n}", f"10.77.{n}.2", base / f"node{n}", seen, f"dap-mux-{os.getpid()}-{n}")
        for n in range(1, count + 1)
    ]
    with private_network():
        try:
            for host in hosts:
                host.folder.mkdir()
                _connect(host)
            yield hosts
        finally:
            for host in hosts:
                with suppress(subprocess.CalledProcessError):
                    ip("netns", "del", host.namespace)


def _connect(host: Host) -> None:
    """A cable between the test's network and the host's."""
    near = f"near-{host.name}"
    plug_in(host.namespace, near, f"far-{host.name}", f"{host.address}/30")
    ip("addr", "add", f"{host.near_address}/30", "dev", near)
    ip("link", "set", near, "up")


def join(hosts: list[Host]) -> None:
    """A cable between two hosts, and a way from both to our end of the first one's."""
    one, two = hosts
    peer = ("peer", "name", "beside", "netns", two.namespace)
    ip("-n", one.namespace, "link", "add", "beside", "type", "veth", *peer)
    for host, other in ((one, two), (two, one)):
        ip("-n", host.namespace, "link", "set", "beside", "up")
        ip("-n", host.namespace, "route", "add", other.address, "dev", "beside")
    ip("-n", two.namespace, "route", "add", one.near_address, "via", two.near_address)


def route_between(hosts: list[Host]) -> None:
    """A way from each host to all others, through the test's own network."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", "ascii")
    for host in hosts:
        ip("-n", host.namespace, "route", "add", "default", "via", host.near_address)


def tools_present() -> bool:
    """Whether the commands that namespaces take are there."""
    return all(shutil.which(tool) for tool in ("ip", "mount"))


@asynccontextmanager
async def ranks_on(
    hosts: list[Host], count: int, script: str, *arguments: str, folder: Path
) -> AsyncIterator[list[FarRank]]:
    """`count` ranks on each host, in its project folder, waiting for a client.

    They are there once each has said that it listens. `script` is below the host's `seen`.
    """
    ranks: list[FarRank] = []
    try:
        for number, host in enumerate(host for host in hosts for _ in range(count)):
            ranks.append(await _start(number, host, [script, *arguments], folder))
        for rank in ranks:
            ready = _ready(rank.rank, folder)
            await until(lambda r=rank, f=ready: _is_ready(r, f), within=_START, what=str(ready))  # type: ignore[misc]
        yield ranks
    finally:
        for rank in ranks:
            with suppress(ProcessLookupError):
                os.killpg(rank.process.pid, signal.SIGKILL)
            await rank.process.wait()


def _ready(rank: int, folder: Path) -> Path:
    return folder / f"rank-{rank}.json"


def _is_ready(rank: FarRank, ready: Path) -> bool:
    assert rank.process.returncode is None, rank.log.read_text("utf-8")
    if ready.exists():
        rank.record = json.loads(ready.read_text("utf-8"))
    return bool(rank.record)


async def _start(rank: int, host: Host, words: list[str], folder: Path) -> FarRank:
    script = host.seen / words[0]
    agent = [sys.executable, "-m", "dap_mux.rank", "--ready-file", str(_ready(rank, folder))]
    where = ["--host", host.address, "--port", str(_BASE + rank if host.namespace else 0)]
    # The shell goes there itself: the folder may be seen by nobody else.
    start = ["sh", "-c", 'cd "$0" && exec "$@"', str(script.parent), *agent, *where]
    log = folder / f"rank-{rank}.log"
    clean = {name: text for name, text in os.environ.items() if not name.startswith(_FOREIGN)}
    environ = {**clean, "RANK": str(rank), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    command = host.command(*start, str(script), *words[1:])
    process = await logged(log, *command, env=environ, start_new_session=True)
    return FarRank(rank, host, process, log)
