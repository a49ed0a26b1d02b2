"""Two hosts with networks of their own, each with a real sshd: what `ssh -L` is tried on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.launchers.tools import command
from tests.support.hosts.hosts import Host, join, namespaces
from tests.support.hosts.private_network import inside, logged
from tests.support.processes.waiting import until

LIMIT: Final = 30.0  # s; not a wait
_SERVER: Final = """
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
"""
_CLIENT: Final = """
Host {name} {address}
  HostName {address}
  User root
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
"""
# sshd wants a folder that only a running system has; this one is nobody else's.
_OWN_RUN: Final = 'mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec "$0" "$@"'


@dataclass(frozen=True)
class SshHosts:
    """`hosts`, and the configuration of ssh that knows them by name."""

    hosts: list[Host]
    configuration: Path

    @property
    def environ(self) -> dict[str, str]:
        """What dap-mux needs to find them."""
        return {"DAP_MUX_SSH": f"ssh -F {self.configuration}"}


@asynccontextmanager
async def ssh_hosts(base: Path) -> AsyncIterator[SshHosts]:
    """Start them; the whole test moves to a network between them until the block is left."""
    with namespaces(base) as hosts:
        join(hosts)
        async with servers(hosts, base) as running:
            yield running


@asynccontextmanager
async def servers(hosts: list[Host], base: Path) -> AsyncIterator[SshHosts]:
    """An sshd on each of these, until the block is left."""
    sshd, ssh_keygen = command("sshd"), command("ssh-keygen")
    folder = base / "ssh"
    folder.mkdir(mode=0o700)
    async with AsyncExitStack() as stack:
        for key in ("host_key", "user_key"):
            words = [ssh_keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            _run(words)
        (folder / "sshd_config").write_text(_SERVER.format(folder=folder), "utf-8")
        for host in hosts:
            enter = [*inside(host.namespace), "unshare", "-m", "sh", "-c", _OWN_RUN]
            server = [sshd, "-D", "-e", "-f", str(folder / "sshd_config")]
            log = folder / f"{host.name}.log"
            process = await logged(log, *enter, *server, start_new_session=True)
            stack.push_async_callback(_end, process, log)
            await until(
                lambda log=log: "Server listening" in log.read_text("utf-8"),  # type: ignore[misc]
                within=LIMIT,
                what="sshd listens",
            )
        yield SshHosts(hosts, _configure(hosts, folder))


def _configure(hosts: list[Host], folder: Path) -> Path:
    """The user's configuration of ssh, and the hosts' keys."""
    kind, key = (folder / "host_key.pub").read_text("ascii").split()[:2]
    known = "".join(f"{host.address} {kind} {key}\n" for host in hosts)
    (folder / "known_hosts").write_text(known, "ascii")
    parts = [_CLIENT.format(name=h.name, address=h.address, folder=folder) for h in hosts]
    configuration = folder / "config"
    configuration.write_text("".join(parts), "utf-8")
    return configuration


def _run(words: list[str]) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=LIMIT)


async def _end(process: asyncio.subprocess.Process, log: Path) -> None:
    """The server, and what is left of its connections."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), LIMIT) is not None, log
