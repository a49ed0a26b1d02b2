"""A real SLURM: munged, slurmctld, and two slurmd on hosts with networks of their own.

All in one folder, under ports that nobody else sees. Only root may make such hosts.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.launchers.tools import command
from tests.support.hosts.hosts import Host, join, namespaces
from tests.support.hosts.private_network import inside, kill_all_in, logged
from tests.support.processes.waiting import until

LIMIT: Final = 60.0  # s; not a wait
_PROGRAMS: Final = (
    "mungekey",
    "munged",
    "slurmctld",
    "slurmd",
    "squeue",
    "nsenter",
    "unshare",
    "ip",
)
# The nodes know each other by name.
_NAMES: Final = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"')
_CONFIGURATION: Final = """
ClusterName=tests
SlurmctldHost={name}({ours})
SlurmctldPort=6817
SlurmdPort=6818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class SlurmCluster:
    """A running cluster of two nodes with eight CPUs each."""

    folder: Path
    nodes: list[Host]

    @property
    def environ(self) -> dict[str, str]:
        """What SLURM's commands need to find it."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def tell(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """Run one of SLURM's commands; what it printed. `env`: instead of our environment."""
        done = subprocess.run(
            words,
            env={**(os.environ if env is None else env), **self.environ},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def submit(self, *words: str, cwd: Path, env: Mapping[str, str] | None = None) -> int:
        """Submit a job with `sbatch WORDS`; its number. Its output goes to `cwd`/slurm-N.out."""
        where = ["--chdir", str(cwd), "--output", f"{cwd}/slurm-%j.out"]
        said = self.tell("sbatch", *where, *words, env=env)
        found = re.search(r"Submitted batch job (\d+)", said)
        assert found, said
        return int(found[1])

    def state(self, job: int) -> str:
        """Its state in SLURM's own word, such as RUNNING."""
        return self.tell("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T").strip()

    def steps(self, job: int) -> list[str]:
        """Its running steps, the batch script among them."""
        return self.tell("squeue", "-h", "-s", "-j", str(job), "-o", "%i").split()

    async def reaches(self, job: int, state: str) -> None:
        """Wait until it is in a state."""
        await until(lambda: state in self.state(job), within=LIMIT, what=f"job {job} is {state}")

    async def ends(self, job: int) -> str:
        """Wait for a job's end; its last state."""
        busy = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
        await until(lambda: self.state(job) not in busy, within=LIMIT, what=f"job {job} ends")
        return self.state(job)


@asynccontextmanager
async def slurm_cluster(base: Path) -> AsyncIterator[SlurmCluster]:
    """Start the cluster; the whole test moves to its network until the block is left."""
    programs = {name: command(name) for name in _PROGRAMS}
    folder = base / "slurm"
    folder.mkdir()
    async with AsyncExitStack() as stack:
        hosts = stack.enter_context(namespaces(base))
        join(hosts)
        cluster = SlurmCluster(folder, hosts)
        names = str(_configure(cluster))
        munged = _munged(folder, programs)
        stack.push_async_callback(_end, await _start(munged, cluster))
        socket_file = folder / "munge.socket"
        await until(socket_file.exists, within=LIMIT, what="munged listens")
        controller = await _start([programs["slurmctld"], "-D", "-c"], cluster)
        stack.push_async_callback(_end, controller)
        for host in hosts:
            # A step that hangs would outlive its daemon.
            stack.callback(kill_all_in, host.namespace)
            # Not `ip netns exec`: SLURM wants to see the same files everywhere.
            enter = [*inside(host.namespace), *_NAMES, names]
            daemon = await _start([*enter, programs["slurmd"], "-D", "-N", host.name], cluster)
            stack.push_async_callback(_end, daemon)
        await until(lambda: _idle(cluster) == len(hosts), within=LIMIT, what="idle nodes")
        stack.push_async_callback(_cancel_all, cluster)
        yield cluster


def _configure(cluster: SlurmCluster) -> Path:
    """Write its configuration; the path of the nodes' /etc/hosts."""
    lines = [
        f"NodeName={n.name} NodeAddr={n.address} CPUs=8 RealMemory=1000" for n in cluster.nodes
    ]
    text = _CONFIGURATION.format(
        name=socket.gethostname(),
        ours=cluster.nodes[0].near_address,
        folder=cluster.folder,
        nodes="\n".join(lines),
    )
    for name in ("state", *(host.name for host in cluster.nodes)):
        (cluster.folder / name).mkdir()
    (cluster.folder / "slurm.conf").write_text(text, "utf-8")
    names = cluster.folder / "hosts"
    known = "".join(f"{host.address} {host.name}\n" for host in cluster.nodes)
    names.write_text(f"127.0.0.1 localhost\n{known}", "utf-8")
    return names


def _munged(folder: Path, programs: dict[str, str]) -> list[str]:
    """Make a key; the command that starts the daemon."""
    key = folder / "munge.key"
    subprocess.run([programs["mungekey"], "-c", "-k", key], check=True, timeout=LIMIT)
    names = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log",
             "seed-file": "seed"}  # fmt: skip
    files = [f"--{option}={folder}/munge.{end}" for option, end in names.items()]
    # --force: as root, in a folder that is not the system's
    return [programs["munged"], "--foreground", "--force", *files]


async def _start(words: list[str], cluster: SlurmCluster) -> asyncio.subprocess.Process:
    log = cluster.folder / f"{Path(words[-1]).name}.daemon"
    return await logged(log, *words, env={**os.environ, **cluster.environ})


def _idle(cluster: SlurmCluster) -> int:
    with suppress(AssertionError):  # slurmctld does not answer yet
        return cluster.tell("sinfo", "-h", "-N", "-o", "%T").split().count("idle")
    return 0


async def _cancel_all(cluster: SlurmCluster) -> None:
    """End what still runs, so that no step outlives its daemon."""
    cluster.tell("scancel", "--user", "root")
    await until(
        lambda: not cluster.tell("squeue", "-h"), within=LIMIT, what="no job is left in the queue"
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), 10)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
