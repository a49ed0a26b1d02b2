"""A rank of our agent serves sessions by itself, and stock clients by an adapter of their own."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from dap_mux.client import ConnectionLost, DapClient, RequestFailed
from dap_mux.pure.protocol.messages import encode_frame
from dap_mux.rank.in_process import SESSION
from tests.conftest import rounds
from tests.real.driving import COUNT, COUNTING, Driver, driving
from tests.real.faults.test_ranks_come_and_go import EAGER, steps_on
from tests.real.ranks.agents import Agent, Start, attach, attach_again
from tests.real.ranks.test_adapter_kept import lost_and_back
from tests.support.faults import Orphan, proxied
from tests.support.hosts.private_network import possible, private_network
from tests.support.processes import proc_net
from tests.support.processes.ranks import HOST
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]
LIMIT: Final = 60.0  # s
BUSY: Final = "already being debugged"
STRANGERS: Final = 100  # at a time: a full backlog delays connections by seconds


@pytest.fixture
async def rank(start: Start, done: Path) -> Agent:
    return await start("--no-wait", "--port", str(proc_net.free_ports(1)), COUNTING, str(done))


def children(agent: Agent) -> list[int]:
    """The processes whose parent the rank is, and the adapters that were started for its port."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            port = str(agent.record["port"]).encode()
            if b"--server-access-token" in words and port in words:
                found.append(int(folder.name))
    return found


def initialize(arguments: dict[str, Any]) -> bytes:
    """The first request of a connection, as it is sent."""
    request = {"seq": 1, "type": "request", "command": "initialize", "arguments": arguments}
    return encode_frame(json.dumps(request).encode())


async def no_adapter(agent: Agent) -> None:
    await until(lambda: not children(agent), within=LIMIT, what="no adapter")


async def stops(client: DapClient) -> None:
    """The client's breakpoint is hit, and the rank goes on."""
    where: dict[str, Any] = {"source": {"path": COUNTING}, "breakpoints": [{"line": COUNT}]}
    await client.request("setBreakpoints", where, timeout=LIMIT)
    event = await client.wait_event("stopped", timeout=LIMIT)
    await client.request("setBreakpoints", {**where, "breakpoints": []}, timeout=LIMIT)
    await client.request("continue", {"threadId": event["threadId"]}, timeout=LIMIT)


async def ends_well(agent: Agent, done: Path) -> None:
    done.touch()
    assert await agent.ends() == 0
    assert "counted" in agent.text()


async def test_a_session_needs_no_adapter(rank: Agent, done: Path) -> None:
    port = rank.record["port"]
    async with driving([port], {COUNTING: [COUNT]}, stopped=COUNT) as driver:
        await steps_on(driver, 0, [0])
        assert (proc_net.listener(port), children(rank)) == (rank.process.pid, [])
        await driver.leave()
        again = await Driver.attach(driver.session, breakpoints={COUNTING: [COUNT]})
        await again.stopped(COUNT, 1)
        await again.leave()
        await ends_well(rank, done)


async def test_a_stock_client_gets_an_adapter_for_as_long_as_it_stays(
    rank: Agent, done: Path
) -> None:
    for _ in range(2):
        client = await attach(rank)
        assert len(children(rank)) == 1
        told = [event["body"] for event in client.events if event["event"] == "debugpySockets"]
        where = {"host": HOST, "port": rank.record["port"], "internal": False}
        assert where in told[-1]["sockets"]
        await stops(client)
        await client.disconnect(timeout=LIMIT)
        await no_adapter(rank)
    async with driving([rank.record["port"]], {COUNTING: [COUNT]}, stopped=COUNT) as driver:
        assert not children(rank)
        await driver.leave()
    await ends_well(rank, done)


@pytest.mark.heavy
async def test_a_client_that_comes_as_another_goes_has_an_answer(rank: Agent, done: Path) -> None:
    """It was handed to the adapter that saw the other out, and hung: 4 times of 4, 10 rounds each.

    Or it is told that the rank is still being debugged.
    """
    client = await attach(rank)
    for _ in range(10):
        await client.close()
        client = await attach_again(rank)
    await client.disconnect(timeout=LIMIT)
    await ends_well(rank, done)


@pytest.mark.heavy
async def test_the_adapter_ends_with_its_rank(rank: Agent) -> None:
    client = await attach(rank)
    (adapter,) = children(rank)
    rank.process.kill()
    await client.wait_event("terminated", timeout=LIMIT)
    await until(lambda: not Path(f"/proc/{adapter}").exists(), within=LIMIT, what="it has ended")
    await client.close()


async def test_a_rank_runs_on_when_the_adapter_is_killed(rank: Agent, done: Path) -> None:
    """Stopped as it was; the next client gets another."""
    client = await attach(rank)
    await client.request("pause", {"threadId": 1}, timeout=LIMIT)
    await client.wait_event("stopped", timeout=LIMIT)
    (adapter,) = children(rank)
    os.kill(adapter, signal.SIGKILL)
    with pytest.raises(ConnectionLost):
        await client.request("threads", timeout=LIMIT)
    await client.close()
    again = await attach(rank)
    await stops(again)
    await again.disconnect(timeout=LIMIT)
    await ends_well(rank, done)


@pytest.mark.heavy
async def test_an_adapter_that_answers_nothing_is_replaced(rank: Agent, done: Path) -> None:
    """It was started for child processes, and so it stays when its session leaves."""
    async with driving([rank.record["port"]], settings=EAGER, subProcess=True) as driver:
        await driver.live(1, within=LIMIT)
        await until(lambda: len(children(rank)) == 1, within=LIMIT, what="its adapter")
        await driver.leave()
        (adapter,) = children(rank)
        os.kill(adapter, signal.SIGSTOP)
        again = await Driver.attach(driver.session, breakpoints={COUNTING: [COUNT]})
        await again.stopped(COUNT, 1, within=LIMIT)
        await again.leave()
        os.kill(adapter, signal.SIGCONT)
        await no_adapter(rank)
        await ends_well(rank, done)


async def test_one_debugger_at_a_time(rank: Agent, done: Path) -> None:
    """Another session, and clients with no key or a wrong one, are refused while one is here."""
    port = rank.record["port"]
    async with driving([port], {COUNTING: [COUNT]}, settings=EAGER, stopped=COUNT) as driver:
        async with driving([port], settings=EAGER) as stranger:
            await stranger.until(lambda e: BUSY in e[0]["reason"], within=LIMIT)
        for about in (None, {}, {"key": ""}, {"key": None}, {"key": "0" * 64}, {"child": 1}):
            client = await DapClient.connect(HOST, port)
            arguments = {"adapterID": "debugpy", **({} if about is None else {SESSION: about})}
            with pytest.raises(RequestFailed, match=BUSY):
                await client.request("initialize", arguments, timeout=LIMIT)
            await client.close()
        await steps_on(driver, 0, [0])
        await driver.leave()
    await ends_well(rank, done)


@pytest.mark.heavy
async def test_a_session_waits_for_a_stock_client(rank: Agent, done: Path) -> None:
    client = await attach(rank)
    async with driving([rank.record["port"]], {COUNTING: [COUNT]}, settings=EAGER) as driver:
        await driver.until(lambda e: BUSY in e[0]["reason"], within=LIMIT, what="busy")
        await client.disconnect(timeout=LIMIT)
        await driver.stopped(COUNT, 1, within=LIMIT)
        await driver.leave()
    await ends_well(rank, done)


async def test_a_session_takes_its_own_place(rank: Agent, done: Path) -> None:
    """Its connection has broken, and the rank is never told: it is attached again all the same."""
    async with (
        proxied(rank.record["port"]) as tunnel,
        driving([tunnel.port], {COUNTING: [COUNT]}, settings=EAGER, stopped=COUNT) as driver,
    ):
        for _ in range(3):
            await tunnel.fail(Orphan())
            await lost_and_back(driver)
        await tunnel.heal()
        await steps_on(driver, 0, [0])
        await driver.leave()
    await ends_well(rank, done)


COUNTS_METADATA: Final = """\
import sys

read = []

def note(event, words):
    if event == "open" and str(words[0]).endswith("METADATA"):
        read.append(words[0])

sys.addaudithook(note)
"""


async def test_installed_packages_are_read_for_a_log_alone(start: Start, tmp_path: Path) -> None:
    """Which takes a rank longer than all the rest of its start, where many are installed."""
    program, logs = tmp_path / "program.py", tmp_path / "logs"
    program.write_text("import sitecustomize\nprint('read:', bool(sitecustomize.read))\n")
    (tmp_path / "sitecustomize.py").write_text(COUNTS_METADATA)
    rank = await start("--no-wait", str(program), PYTHONPATH=str(tmp_path))
    assert await rank.ends() == 0
    assert "read: False" in rank.text()
    environ = {"PYTHONPATH": str(tmp_path), "DEBUGPY_LOG_DIR": str(logs)}
    rank = await start("--no-wait", str(program), **environ)
    assert await rank.ends() == 0
    assert "read: True" in rank.text()
    (log,) = logs.glob("debugpy.server-*.log")
    assert "Installed packages:" in log.read_text("utf-8")


async def test_17_mb_from_a_rank(rank: Agent, done: Path) -> None:
    """More than a message may have: that request fails, and the rank is attached again."""
    async with driving(
        [rank.record["port"]], {COUNTING: [COUNT]}, settings=EAGER, stopped=COUNT
    ) as driver:
        await driver.look(0)
        much = {"expression": f"'x' * {17 * 2**20}", "context": "watch"}
        with pytest.raises(RequestFailed, match="malformed"):
            await driver.client.request("evaluate", much, timeout=LIMIT)
        await driver.stopped(COUNT, 1, within=LIMIT)
        await steps_on(driver, 0, [0])
        await driver.leave()
    await ends_well(rank, done)


BROKEN: Final = (
    b"Content-Length: x\r\n\r\n",
    b"Content-Length: 9\r\n\r\nnot JSON!",
    b"Content-Length: 2\r\n\r\n[]",
    b"1\n",
    b"\xff\xfe\n",
)


async def test_broken_messages_leave_no_traceback_in_the_program(rank: Agent, done: Path) -> None:
    """Of whoever is let in, as a debugger; the next is served."""
    for broken in BROKEN:
        with socket.create_connection((HOST, rank.record["port"])) as stranger:
            stranger.settimeout(LIMIT)
            stranger.sendall(initialize({SESSION: {}}) + broken)
            stranger.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                while stranger.recv(4096):
                    pass
    client = await attach_again(rank)
    await stops(client)
    await client.disconnect(timeout=LIMIT)
    await ends_well(rank, done)
    assert "Traceback" not in rank.text()


async def test_a_web_page_and_who_asks_for_no_child_run_nothing_in_a_rank(
    rank: Agent, done: Path
) -> None:
    """debugpy's adapter finds its messages in the body of an HTTP request, too."""
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with socket.create_connection((HOST, rank.record["port"])) as page:
        page.sendall(head + initialize({SESSION: {}}))
        page.settimeout(LIMIT)
        with suppress(ConnectionResetError):
            assert not page.recv(1)
    client = await DapClient.connect(HOST, rank.record["port"])
    arguments = {"adapterID": "debugpy", SESSION: {"child": 1}}
    with pytest.raises(RequestFailed, match="no child process"):
        await client.request("initialize", arguments, timeout=LIMIT)
    await client.close()
    assert not children(rank)
    await ends_well(rank, done)


COUNTS_FILES: Final = """\
import os, resource, sys, time

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
rounds = 0
while not os.path.exists(sys.argv[1]):
    with open(__file__) as one, open(__file__) as two:
        assert one.read() == two.read()
    rounds += 1
print("counted", rounds)
"""


@pytest.mark.heavy
@pytest.mark.skipif(not possible(), reason="only root may have a network of its own")
async def test_strangers_take_nothing_that_the_program_needs(
    start: Start, tmp_path: Path, done: Path
) -> None:
    """Each with a valid `initialize`, hundreds at a time, while a debugger is attached.

    They come from many addresses, in a network of their own.
    """
    program = tmp_path / "counts.py"
    program.write_text(COUNTS_FILES)
    line = COUNTS_FILES.splitlines().index("    rounds += 1") + 1
    with private_network():
        rank = await start(
            "--no-wait", "--port", str(proc_net.free_ports(1)), str(program), str(done)
        )
        folder = Path(f"/proc/{rank.process.pid}")
        most = {"fd": 0, "task": 0}

        def look() -> dict[str, int]:
            now = {name: len(list((folder / name).iterdir())) for name in most}
            most.update({name: max(most[name], seen) for name, seen in now.items()})
            return now

        async with driving([rank.record["port"]], {str(program): [line]}, settings=EAGER) as driver:
            await driver.stopped(line, 1, within=LIMIT)
            before = look()
            for _ in range(0, rounds(5000), STRANGERS):
                port = rank.record["port"]
                strangers = (_initializes(port, each, look) for each in range(STRANGERS))
                await asyncio.gather(*strangers)
            assert most["fd"] <= before["fd"] + 8
            assert most["task"] <= before["task"] + 4
            await steps_on(driver, 0, [0])
            await driver.leave()
        await ends_well(rank, done)
        assert "Traceback" not in rank.text()


async def _initializes(port: int, number: int, look: Callable[[], object]) -> None:
    """Nothing but being refused, or closed at once, can happen to this one."""
    try:
        mine = (f"127.1.1.{number % 250 + 1}", 0)
        reader, writer = await asyncio.open_connection(HOST, port, local_addr=mine)
    except ConnectionError:
        return
    writer.write(initialize({}))
    look()
    heard = b""
    with suppress(ConnectionError):
        heard = await asyncio.wait_for(reader.read(), LIMIT)
    assert not heard or BUSY.encode() in heard
    writer.close()


async def test_the_last_descriptors_are_left_to_the_program(
    start: Start, tmp_path: Path, done: Path
) -> None:
    program = tmp_path / "counts.py"
    program.write_text(
        "import os, resource, sys, time\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "files = [open(__file__) for _ in range(64 - 12 - len(os.listdir('/proc/self/fd')))]\n"
        "print('all open', flush=True)\n"
        "while not os.path.exists(sys.argv[1]):\n"
        "    time.sleep(0.01)\n"
        "files.append(open(__file__))\n"
        "print('counted')\n"
    )
    rank = await start("--no-wait", "--port", str(proc_net.free_ports(1)), str(program), str(done))
    await until(lambda: "all open" in rank.text(), within=LIMIT, what="all open")
    with pytest.raises((ConnectionLost, ConnectionError)):
        await attach(rank)
    await ends_well(rank, done)


async def test_a_forked_child_does_not_keep_the_port(
    start: Start, tmp_path: Path, done: Path
) -> None:
    """Nor the connection: the session hears of the end of a rank whose child runs on."""
    program = tmp_path / "forks.py"
    program.write_text(
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    while not os.path.exists(sys.argv[1]):\n"
        "        time.sleep(0.01)\n"
        "    os._exit(0)\n"
        "time.sleep(60)\n"
    )
    port = proc_net.free_ports(1)
    rank = await start("--wait", "--port", str(port), str(program), str(done))
    client = await attach(rank)
    forked = Path(f"/proc/{rank.process.pid}/task/{rank.process.pid}/children")
    await until(lambda: forked.read_text().strip(), within=LIMIT, what="it has forked")
    rank.process.kill()
    await client.wait_event("terminated", timeout=LIMIT)
    await client.close()
    with anyio.fail_after(LIMIT):
        again = await start("--wait", "--port", str(port), str(program), str(done))
    assert again.record["port"] == port
    done.touch()
