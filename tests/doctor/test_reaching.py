"""Why a rank cannot be reached: each cause brought about on purpose, with real debugpy."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import ConnectionLost, DapClient, RequestFailed
from tests.doctor.conftest import Doctor, endpoint, user
from tests.real.driving import script
from tests.support import proc_net
from tests.support.commands import LIMIT, User, listed
from tests.support.ranks import Rank
from tests.support.waiting import until

__all__ = ["user"]
pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
StartRanks = Callable[..., Awaitable[list[Rank]]]
Connect = Callable[..., Awaitable[DapClient]]
PROGRAM: Final = script("until_told")
TUNNEL: Final = Path(__file__).parent / "scripts" / "socat"
ATTACH: Final = {"subProcess": False}
# Listens on a port, and ends with the first who connects.
DIES: Final = """\
import socket
import sys

with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as door:
    door.accept()
"""


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """The file whose being there lets a program end."""
    return tmp_path / "done"


@pytest.fixture
async def running(start_ranks: StartRanks, done: Path) -> Rank:
    (rank,) = await start_ranks(1, PROGRAM, wait=False, arguments=[str(done)])
    return rank


@asynccontextmanager
async def program(*words: str, listens: int) -> AsyncIterator[int]:
    """A program of ours until the block is left; yields its pid once it listens on a port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await until(lambda: proc_net.listens(listens), within=LIMIT, what=f"{words[0]} listens")
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def tunnel(*ways: tuple[int, int]) -> AsyncIterator[None]:
    """A tunnel for each pair: from a port, to a port."""
    if not ways:
        yield
        return
    (here, there), *rest = ways
    async with program(str(TUNNEL), str(here), str(there), listens=here), tunnel(*rest):
        yield


async def left(*ranks: Rank) -> None:
    """Wait until nobody is connected to them any more, and their adapters know it.

    Who leaves is answered first: an adapter may still have to notice the end of the connection.
    """
    ports = {rank.port for rank in ranks}

    def nobody() -> bool:
        rows = [one for one in proc_net.sockets() if one.local_port in ports]
        return not any(one.state in (proc_net.ESTABLISHED, proc_net.CLOSE_WAIT) for one in rows)

    await until(nobody, within=LIMIT, what="nobody is connected")


async def attach_and_finish(connect: Connect, ranks: list[Rank], done: Path) -> None:
    """The doctor has harmed nobody: each is attached, left, and runs to its own end."""
    await left(*ranks)
    for rank in ranks:
        client = await connect(rank.port, strict=False)
        await client.handshake(ATTACH, timeout=LIMIT)
        await client.disconnect(timeout=LIMIT)
    let_end(done)
    for rank in ranks:
        assert await rank.ended(within=LIMIT) == 0, rank.output
        assert "counted" in rank.output


def let_end(done: Path) -> None:
    """Programs run until they see this file."""
    done.touch()


# Healthy


@pytest.mark.quick
async def test_ranks_that_wait_to_be_debugged_are_healthy(
    doctor: Doctor, start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    ranks = [
        *(await start_ranks(2, PROGRAM, wait=True, arguments=[str(done)])),
        *(await start_ranks(1, PROGRAM, wait=False, arguments=[str(done)])),
    ]
    assert await doctor.causes(*map(endpoint, ranks)) == []
    await attach_and_finish(connect, ranks, done)


async def test_a_proper_conversation_harms_nobody(
    doctor: Doctor, start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    """Behind a tunnel only debugpy itself can tell: it is asked, twice, and nothing has changed."""
    held = await start_ranks(2, PROGRAM, wait=True, arguments=[str(done)])
    (runs,) = await start_ranks(1, PROGRAM, wait=False, arguments=[str(done)])
    ranks = [*held, runs]
    first = proc_net.free_ports(3)
    async with tunnel(*((first + n, rank.port) for n, rank in enumerate(ranks))):
        for _ in range(2):
            assert await doctor.causes(f"127.0.0.1:{first}-{first + 2}") == []
            await left(*ranks)
    let_end(done)  # one that was let go would end
    assert await runs.ended(within=LIMIT) == 0
    assert all(rank.running for rank in held)
    await attach_and_finish(connect, held, done)


async def test_a_session_and_its_launch_configuration_are_healthy(
    doctor: Doctor, user: User, start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    ranks = await start_ranks(2, PROGRAM, wait=True, arguments=[str(done)])
    attach = await user.start("attach", *map(endpoint, ranks))
    session = await attach.session()
    connection = {"host": "localhost", "port": session["port"]}
    configuration = {"name": "ours", "type": "debugpy", "request": "attach", "connect": connection}
    write_launch(user, configuration)
    client = await attach.client()
    await client.handshake({**ATTACH, "justMyCode": True}, timeout=LIMIT)
    await listed(client, "state", "running", "running")
    assert await doctor.causes() == []
    assert await doctor.causes(f"127.0.0.1:{session['port']}") == []
    assert await doctor.causes(*map(endpoint, ranks)) == []
    await client.disconnect(timeout=LIMIT)
    await left(*ranks)
    assert await doctor.causes() == []
    await attach_and_finish(connect, [], done)


async def test_ranks_that_call_their_session_are_healthy(
    doctor: Doctor, user: User, done: Path
) -> None:
    """They listen nowhere: before anybody is attached, while somebody is, and after that."""
    run = await user.start("run", "--dial", "-n", "2", PROGRAM, str(done))
    client = await run.client()
    await client.request("initialize", {"adapterID": "dap-mux"}, timeout=LIMIT)
    await client.request("attach", {"role": "observer"}, timeout=LIMIT)
    await listed(client, "host", "127.0.0.1", "127.0.0.1")  # both have called
    entries = await listed(client, "state", "waiting", "waiting")
    assert [entry["endpoint"] for entry in entries] == [None, None]
    assert await doctor.causes() == []
    other = await run.client("other")
    await other.handshake({**ATTACH, "justMyCode": True}, timeout=LIMIT)
    await listed(client, "state", "running", "running")
    assert await doctor.causes() == []
    await other.disconnect(timeout=LIMIT)
    await listed(client, "state", "waiting", "waiting")
    assert await doctor.causes() == []
    let_end(done)
    assert (await run.ends()).code == 0


def write_launch(user: User, *configurations: dict[str, Any]) -> None:
    """A launch.json as VS Code makes it."""
    (user.folder / ".vscode").mkdir()
    body = json.dumps({"version": "0.2.0", "configurations": list(configurations)}, indent=4)
    text = "// Use IntelliSense to learn about it: https://go.microsoft.com\n" + body
    (user.folder / ".vscode/launch.json").write_text(text.replace("]", ",]"), "utf-8")


# Refused


async def test_nothing_listens(doctor: Doctor, free_port: int) -> None:
    found = await doctor.only("refused", f"127.0.0.1:{free_port}")
    assert found["where"] == f"127.0.0.1:{free_port}"
    assert f"listens on 127.0.0.1:{free_port}" in found["evidence"][0]


async def test_a_launch_configuration_that_leads_nowhere(
    doctor: Doctor, user: User, free_port: int
) -> None:
    connection = {"host": "127.0.0.1", "port": free_port}
    write_launch(
        user,
        {"name": "cluster", "type": "dap-mux", "request": "attach", "connect": connection},
        {"name": "other", "type": "node", "request": "attach", "port": 9229},
    )
    found = await doctor.only("refused")
    assert '.vscode/launch.json, "cluster"' in found["evidence"][0]


async def test_ranks_of_a_session_that_are_not_there(
    doctor: Doctor, user: User, running: Rank
) -> None:
    first = proc_net.free_ports(2)
    attach = await user.start("attach", endpoint(running), f"127.0.0.1:{first}-{first + 1}")
    client = await attach.client()
    await client.handshake(ATTACH, timeout=LIMIT)
    await listed(client, "state", "running", "waiting", "waiting")
    found = await doctor.only("refused")
    assert found["ranks"] == "1-2"
    assert found["where"] == f"127.0.0.1:{first}-{first + 1}"


# Wrong port


@pytest.mark.parametrize("words", [["-m", "http.server", "--bind", "127.0.0.1"]])
async def test_somebody_else_listens_there(
    doctor: Doctor, words: list[str], free_port: int
) -> None:
    async with program(*words, str(free_port), listens=free_port):
        found = await doctor.only("wrong-port", f"127.0.0.1:{free_port}")
    assert "does not speak the debug adapter protocol" in found["evidence"][0]


async def test_a_session_is_no_rank(doctor: Doctor, user: User, running: Rank) -> None:
    """Somebody else's session, that is: one's own is looked at."""
    attach = await user.start("attach", endpoint(running))
    session = await attach.session()
    other = {"XDG_RUNTIME_DIR": str(user.folder)}
    done = await user.does("doctor", f"127.0.0.1:{session['port']}", env=other)
    assert done.code == 1
    assert "that is for editors" in done.out


async def test_ranks_of_this_folder_listen_elsewhere(
    doctor: Doctor, user: User, start_ranks: StartRanks, free_port: int, done: Path
) -> None:
    (rank,) = await start_ranks(1, PROGRAM, wait=False, arguments=[str(done)], folder=user.folder)
    found = await doctor.only("wrong-port", f"127.0.0.1:{free_port}")
    assert any(f"port {rank.port}" in each for each in found["evidence"])
    assert f"127.0.0.1:{rank.port}" in found["fix"][0]


# Already attached


async def test_another_debugger_is_attached(
    doctor: Doctor, running: Rank, connect: Connect
) -> None:
    client = await connect(running.port, strict=False)
    await client.handshake(ATTACH, timeout=LIMIT)
    found = await doctor.only("already-attached", endpoint(running))
    assert f"(pid {os.getpid()})" in found["evidence"][0]
    port = proc_net.free_ports(1)
    async with tunnel((port, running.port)):
        found = await doctor.only("already-attached", f"127.0.0.1:{port}")
    assert "already being debugged" in found["evidence"][0]
    assert (await client.request("evaluate", {"expression": "6*7"}, timeout=LIMIT))[
        "result"
    ] == "42"
    await client.disconnect(timeout=LIMIT)
    await left(running)
    assert await doctor.causes(endpoint(running)) == []


async def test_a_session_whose_rank_somebody_else_has(
    doctor: Doctor, user: User, running: Rank, connect: Connect
) -> None:
    other = await connect(running.port, strict=False)
    await other.handshake(ATTACH, timeout=LIMIT)
    attach = await user.start("attach", endpoint(running))
    client = await attach.client()
    await client.handshake(ATTACH, timeout=LIMIT)
    await reason(client, "already being debugged")
    found = await doctor.only("already-attached")
    assert found["ranks"] == "0"
    await other.disconnect(timeout=LIMIT)
    await listed(client, "state", "running")
    assert await doctor.causes() == []


async def reason(client: DapClient, words: str) -> None:
    """Wait until a session says this of its one rank, while it tries again."""
    said = ""
    for _ in range(1000):
        (entry,) = (await client.request("list", timeout=LIMIT))["ranks"]
        said = entry["reason"] or ""
        if words in said:
            return
        await asyncio.sleep(0.03)
    raise AssertionError(said)


# Wedged


async def test_a_bare_connection(
    doctor: Doctor, start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    """K2: it ends the adapter, or makes it mute, or (rarely) does no harm; the doctor tells."""
    for _ in range(10):
        (rank,) = await start_ranks(1, PROGRAM, wait=False, arguments=[str(done)])
        with socket.create_connection(("127.0.0.1", rank.port)):
            pass
        await left(rank)  # or dead of it; while it does not know yet, the doctor says just that
        found = await doctor.causes(endpoint(rank))
        if not found and not await can_be_attached(connect, rank):
            # The adapter noticed that end only after the doctor had looked.
            found = await doctor.causes(endpoint(rank))
            assert found
        if found:
            assert [one["cause"] for one in found] == ["wedged-adapter"]
            assert "has ended" in str(found) or "takes connections" in str(found)
            return
    raise AssertionError("ten bare connections, and no adapter has come to harm")


async def can_be_attached(connect: Connect, rank: Rank) -> bool:
    """Whether a debugger is let in, and out again."""
    try:
        client = await connect(rank.port, strict=False)
        await client.handshake(ATTACH, timeout=LIMIT)
        await client.disconnect(timeout=LIMIT)
    except (OSError, ConnectionLost, RequestFailed, TimeoutError):
        return False
    return True


async def test_an_adapter_that_was_killed(doctor: Doctor, running: Rank) -> None:
    os.kill(running.adapter, signal.SIGKILL)
    await until(lambda: not proc_net.listens(running.port), within=LIMIT, what="the port is gone")
    found = await doctor.only("wedged-adapter", endpoint(running))
    assert f"(pid {running.pid})" in found["evidence"][0]
    assert "has ended" in found["evidence"][0]


async def test_an_adapter_that_ends_as_it_is_talked_to(
    doctor: Doctor, running: Rank, tmp_path: Path
) -> None:
    """The doctor has seen it, and is hung up on: that is no tunnel."""
    os.kill(running.adapter, signal.SIGKILL)
    await until(lambda: not proc_net.listens(running.port), within=LIMIT, what="the port is gone")
    adapter = tmp_path / "debugpy" / "adapter"
    adapter.parent.mkdir()
    adapter.write_text(DIES, "utf-8")
    async with program(str(adapter), str(running.port), listens=running.port):
        found = await doctor.only("wedged-adapter", endpoint(running))
    assert f"(pid {running.pid})" in found["evidence"][0]
    assert "has ended" in found["evidence"][0]


async def test_an_adapter_that_hangs(doctor: Doctor, running: Rank) -> None:
    os.kill(running.adapter, signal.SIGSTOP)
    try:
        await until(lambda: is_halted(running.adapter), within=LIMIT, what="it is halted")
        found = await doctor.only("wedged-adapter", endpoint(running))
        assert "is halted" in found["evidence"][0]
    finally:
        os.kill(running.adapter, signal.SIGCONT)


def is_halted(pid: int) -> bool:
    """As proc(5) has it; a signal takes its way."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "T"


async def test_a_rank_that_was_continued_while_it_ran(
    doctor: Doctor, user: User, running: Rank, connect: Connect
) -> None:
    """K1: its adapter is attached for ever, to nobody."""
    first = await connect(running.port, strict=False, all_answered=False)
    await first.handshake(ATTACH, timeout=LIMIT)
    first.send("continue", {"threadId": 1})
    with pytest.raises(TimeoutError):
        await first.request("threads", timeout=1)
    await first.close()
    attach = await user.start("attach", endpoint(running))
    client = await attach.client(all_answered=False)
    await client.handshake(ATTACH, timeout=LIMIT)
    await reason(client, "already being debugged")
    found = await doctor.only("wedged-adapter")
    assert "nobody else is connected" in found["evidence"][0]


# Tunnels


async def test_a_tunnel_with_nothing_at_its_other_end(doctor: Doctor, free_port: int) -> None:
    port = proc_net.free_ports(1)
    async with tunnel((port, free_port)):
        found = await doctor.only("tunnel-down", f"127.0.0.1:{port}")
    assert "socat" in found["evidence"][0]


async def test_a_tunnel_that_has_ended(doctor: Doctor, user: User, running: Rank) -> None:
    port = proc_net.free_ports(1)
    async with tunnel((port, running.port)):
        attach = await user.start("attach", f"127.0.0.1:{port}")
        client = await attach.client()
        await client.handshake(ATTACH, timeout=LIMIT)
        await listed(client, "state", "running")
        assert await doctor.causes() == []
    await listed(client, "state", "lost")
    found = await doctor.only("tunnel-down")
    assert found["ranks"] == "0"
    async with tunnel((port, running.port)):
        await listed(client, "state", "running")
        assert await doctor.causes() == []


async def test_half_of_a_range_is_forwarded(
    doctor: Doctor, start_ranks: StartRanks, done: Path, connect: Connect
) -> None:
    ranks = await start_ranks(2, PROGRAM, wait=True, arguments=[str(done)])
    first = proc_net.free_ports(4)
    async with tunnel(*((first + n, rank.port) for n, rank in enumerate(ranks))):
        found = await doctor.only("port-range", f"127.0.0.1:{first}-{first + 3}")
    assert found["where"] == f"127.0.0.1:{first + 2}-{first + 3}"
    assert f"{first + 2}:{first + 2} {first + 3}:{first + 3}" in found["fix"][0]
    await attach_and_finish(connect, ranks, done)


# The user's own words


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nonsense"], 2, "an endpoint looks like"),
        (["pid:x"], 2, "write pid:1234"),
        (["no-such.json"], 3, "no session file of yours"),
    ],
)
async def test_bad_words(user: User, words: list[str], code: int, said: str) -> None:
    done = await user.does("doctor", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


async def test_nothing_to_look_at_is_healthy(doctor: Doctor, user: User) -> None:
    assert await doctor.causes() == []
    done = await user.does("doctor")
    assert done.out.endswith("nothing wrong was found\n")
