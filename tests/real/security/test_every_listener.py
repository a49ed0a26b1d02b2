"""Whatever listens, and what strangers do to any port: each meets each, once.

What is particular to one of them is tested where it is; docs/internals/guarantees.md has the table.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.rank.ready import STACKS
from dap_mux.session.outside_view import ask_rank
from dap_mux.system import procfs
from tests.real.driving import joined, script
from tests.real.ranks.agents import Start, attach_again
from tests.support.processes import proc_net
from tests.support.processes.callers import callers, told_by
from tests.support.processes.commands import LIMIT, User, listed
from tests.support.processes.netcat import PROMPT, Netcat, served

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(180)]
MANY: Final = 100  # within each backlog: a full one delays connections by seconds
Address = int | str
Serves = Callable[[], Awaitable[None]]
Listens = Callable[[User, Start, Path], Awaitable[tuple[Address, Serves]]]
ATTACH: Final = {"justMyCode": True}
HOSTILE: Final = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 80\r\n\r\n{}",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\0" * 1000,
    b"\0" * 70_000,
    b"Content-Length: 99999999\r\n\r\n",
    b"Content-Length: 99999999999\r\n\r\n{",
    b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{",
    b"",
    b"\r\n\r\n",
    b"Content-Length: -1\r\n\r\n",
    b"Content-Length: 20\r\n\r\n{",
    b"Content-Length: 4\r\n\r\nnull",
    b"Content-Length: 2\r\n\r\n\xff\xfe",
    b"Content-Length: 2\r\n\r\n[]",
    b"Content-Length: 9\r\n\r\nnot JSON!",
    b"Content-Length: 10\r\n\r\n" + b"[" * 10,
    b"Content-Length: 50\r\n",
    b"\xff\xfe" * 500,
    b"\n" * 70_000,
)


async def editors(user: User, start: Start, done: Path) -> tuple[Address, Serves]:
    """The port where editors connect."""
    return await _session(user, start, done, "port")


async def editors_here(user: User, start: Start, done: Path) -> tuple[Address, Serves]:
    """The unix socket, for clients of this machine."""
    return await _session(user, start, done, "unix")


async def _session(user: User, start: Start, done: Path, key: str) -> tuple[Address, Serves]:
    rank = await start("--no-wait", script("until_told"), str(done))
    attached = await user.start("attach", f"127.0.0.1:{rank.record['port']}")
    address: Address = (await attached.session())[key]

    async def serves() -> None:
        client = await _connect(address)
        await client.handshake(ATTACH, timeout=LIMIT)
        await listed(client, "state", "running")
        await client.disconnect(timeout=LIMIT)

    return address, serves


async def consoles(user: User, start: Start, done: Path) -> tuple[Address, Serves]:
    """Where `nc` gets a console."""
    await _session(user, start, done, "port")
    _, port = await served(user)

    async def serves() -> None:
        person = await Netcat.connect(port)
        await person.until(PROMPT)
        assert ": running" in await person.does("wait running")
        await person.close()

    return port, serves


async def calls(user: User, start: Start, done: Path) -> tuple[Address, Serves]:
    """Where ranks call that dial out."""
    del start
    attached = await user.start("attach", "dial:1", "--dial-listen", "0")
    told = await told_by(attached)

    async def serves() -> None:
        program = script("until_told")
        await callers(user, [0], program, told, arguments=[str(done)], world=1)
        client = await joined(attached)
        await listed(client, "state", "running")
        await client.disconnect(timeout=LIMIT)

    return int(told["DAP_MUX_DIAL"].rpartition(":")[2]), serves


async def ranks_own(user: User, start: Start, done: Path) -> tuple[Address, Serves]:
    """A rank's own port."""
    del user
    port = proc_net.free_ports(1)
    rank = await start("--no-wait", "--port", str(port), script("until_told"), str(done))

    async def serves() -> None:
        client = await attach_again(rank)
        await client.disconnect(timeout=LIMIT)
        assert "Traceback" not in rank.text()

    return port, serves


async def ranks_stacks(user: User, start: Start, done: Path) -> tuple[Address, Serves]:
    """The unix socket on which a rank of `run` tells its stacks."""
    del start
    run = await user.start("run", "-n", "1", "--no-wait", script("until_told"), str(done))
    client = await joined(run)
    (row,) = await listed(client, "state", "running")
    await client.disconnect(timeout=LIMIT)
    pid: int = row["pid"]
    address = procfs.unix_socket(pid, STACKS)
    assert (_mode(Path(address).parent), _mode(Path(address))) == (0o700, 0o600)

    async def serves() -> None:
        told = await ask_rank(pid)
        assert told is not None
        assert b"until_told" in told

    return address, serves


LISTENERS: Final = [editors, editors_here, consoles, calls, ranks_own, ranks_stacks]


@pytest.mark.parametrize("listens", LISTENERS, ids=lambda one: one.__name__)
async def test_strangers_harm_nobody(
    user: User, start: Start, tmp_path: Path, listens: Listens
) -> None:
    """Those who are gone at once, who send hostile bytes, and who stay and say nothing."""
    address, serves = await listens(user, start, tmp_path / "done")
    for _ in range(MANY):
        with suppress(ConnectionError), _plain(address) as hasty:
            hasty.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    _send_hostile_bytes(address)  # each is answered, so the backlog is empty again
    with ExitStack() as stack:
        for _ in range(MANY):
            with suppress(ConnectionError):
                stack.enter_context(_plain(address))
        await serves()
    (tmp_path / "done").touch()


def _send_hostile_bytes(address: Address) -> None:
    drawn = random.Random(1)
    for said in (*HOSTILE, *(drawn.randbytes(1000) for _ in range(20))):
        with suppress(ConnectionError), _plain(address) as stranger:
            stranger.settimeout(LIMIT)
            stranger.sendall(said)
            with suppress(OSError):  # not connected: it has been hung up on
                stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(4096):
                pass


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _plain(address: Address) -> socket.socket:
    if isinstance(address, int):
        return socket.create_connection(("127.0.0.1", address), timeout=LIMIT)
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(LIMIT)
    try:
        made.connect(address)
    except BaseException:
        made.close()
        raise
    return made


async def _connect(address: Address) -> DapClient:
    if isinstance(address, int):
        return await DapClient.connect("127.0.0.1", address)
    return await DapClient.connect_unix(address)
