"""Five ways to lose a rank for good (docs/internals/debugpy.md); a session takes none of them.

Each test ends with the proof: the rank still answers, or is attached again, and then runs to its
own end.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient, RequestFailed
from dap_mux.engine import Settings, inputs
from dap_mux.engine.ranks import handshake
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank as EngineRank
from tests.real.driving import COUNT, COUNTING, Driver, StartRanks, driving, let_end, script
from tests.support.processes import proc_net
from tests.support.processes.commands import line_of
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until
from tests.support.session import Session, session

pytestmark = [pytest.mark.real, pytest.mark.heavy]
BLOCKED: Final = script("blocked")
LIMIT: Final = 30.0  # s; not a wait
START: Final = 90  # s; 16 ranks and their adapters at once, on a busy machine
_libc: Final = ctypes.CDLL(None)
REST: Final = Settings().reconnect_gap
SHAKING: Final = (
    Phase.CONNECTING,
    Phase.GREETING,
    Phase.ATTACHING,
    Phase.CONFIGURING,
    Phase.STARTING,
    Phase.LIVE,
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is given up as late: a busy machine needs longer than the usual grace."""
    monkeypatch.setattr(handshake, "EVALUATE_GRACE", LIMIT)


@pytest.fixture
async def counting(start_ranks: StartRanks, done: Path) -> Rank:
    (rank,) = await start_ranks(1, COUNTING, wait=False, arguments=[str(done)])
    return rank


async def ends_well(rank: Rank, done: Path, said: str = "counted") -> None:
    """The rank runs on to its own end."""
    let_end(done)
    assert await rank.ended() == 0, rank.output
    assert said in rank.output


def forget(path: Path) -> None:
    path.unlink(missing_ok=True)


async def counts(driver: Driver) -> None:
    """Wait until the rank is in its loop: it listens before it runs its first line."""
    while await driver.evaluate("getattr(__import__('__main__'), 'count', 0)") == "0":
        pass


async def answers(driver: Driver) -> None:
    """The rank's adapter still does what it is asked."""
    assert await driver.evaluate("6 * 7") == "42"


class TestNoContinueToARankThatRuns:
    @pytest.mark.quick
    async def test_continue_and_steps_while_running(self, counting: Rank, done: Path) -> None:
        async with driving([counting.port], live=1) as driver:
            for _ in range(3):
                assert (await driver.control("continue"))["allThreadsContinued"] is True
            for command in ("next", "stepIn", "stepOut"):
                with pytest.raises(RequestFailed, match="running"):
                    await driver.control(command)
            await answers(driver)
            await driver.control("pause")
            await driver.states("stopped")
            await driver.control("continue")
            await driver.control("continue")
            await driver.states("running")
            await answers(driver)
            await ends_well(counting, done)

    async def test_pause_and_continue_without_a_breath(self, counting: Rank, done: Path) -> None:
        async with driving([counting.port]) as driver:
            await driver.live()
            await counts(driver)
            row = {"threadId": driver.row(0)}
            for _ in range(20):
                sent = [driver.client.send(what, row) for what in ("pause", "continue") * 3]
                for response in await asyncio.gather(*sent):
                    assert response["success"]
                await driver.states("running")
            await answers(driver)
            await driver.control("pause")
            await driver.states("stopped")
            assert int(await driver.value(0, "count")) > 0
            await driver.leave()
            await ends_well(counting, done)

    @pytest.mark.parametrize("kind", ["sleep", "select", "lock"])
    async def test_whatever_is_asked_while_a_pause_has_not_landed(
        self, start_ranks: StartRanks, done: Path, tmp_path: Path, kind: str
    ) -> None:
        """The client may leave, too."""
        blocked = tmp_path / "blocked"
        words = [kind, str(done), str(blocked)]
        (rank,) = await start_ranks(1, BLOCKED, wait=False, arguments=words)
        await is_blocked(blocked)
        async with driving([rank.port], live=1) as driver:
            await driver.control("pause")
            await driver.states("pausing")
            assert (await driver.control("continue"))["allThreadsContinued"] is True
            with pytest.raises(RequestFailed, match="running"):
                await driver.control("next")
            await answers(driver)
            free(rank, blocked)
            await driver.states("running")  # its call has returned: the continue was not lost
            await is_blocked(blocked)
            await driver.control("pause")
            await answers(driver)  # so the pause, which came first, is there
            free(rank, blocked)
            await driver.states("stopped")
            await driver.control("continue")
            await answers(driver)
            await is_blocked(blocked)

            await driver.control("pause")
            await driver.states("pausing")
            await driver.leave()
            again = await (await Driver.attach(driver.session)).live()
            await again.control("pause")
            await answers(again)
            free(rank, blocked)
            await again.states("stopped")
            await again.leave()
            await is_blocked(blocked)
            await freed(rank, done, blocked)


async def is_blocked(blocked: Path) -> None:
    """The program says so from within each of its calls into C."""
    await until(blocked.exists, within=LIMIT, what="the rank blocked")


def free(rank: Rank, blocked: Path) -> None:
    """End the call that it is in; it will say so of the next one.

    The signal is for its main thread: another one may take what is for the process.
    """
    forget(blocked)
    assert _libc.tgkill(rank.pid, rank.pid, signal.SIGINT) == 0


async def freed(rank: Rank, done: Path, blocked: Path) -> None:
    """A blocked rank runs on to its own end."""
    let_end(done)
    free(rank, blocked)
    await ends_well(rank, done, "freed")


class TestNoBareConnectAndClose:
    async def test_clients_that_vanish_at_any_moment_of_the_handshake(
        self, counting: Rank, done: Path
    ) -> None:
        async with session([counting.port]) as running:
            for phase in SHAKING * 2:
                await vanish_at(running, phase)
            driver = await (await Driver.attach(running)).live()
            await answers(driver)
            await ends_well(counting, done)

    async def test_leaving_with_questions_unanswered(self, counting: Rank, done: Path) -> None:
        """An evaluate that is answered after `disconnect` ends debugpy's adapter (measured)."""
        async with session([counting.port]) as running:
            for _ in range(4):
                driver = await (await Driver.attach(running)).live()
                slow = {"expression": "__import__('time').sleep(0.2)", "context": "watch"}
                driver.client.send("evaluate", slow)
                driver.client.send("stackTrace", {"threadId": driver.row(0)})
                await driver.leave()
            driver = await (await Driver.attach(running)).live()
            await answers(driver)
            await ends_well(counting, done)

    async def test_sessions_that_end_at_any_moment_of_the_handshake(
        self, counting: Rank, done: Path
    ) -> None:
        for phase in SHAKING * 2:
            async with session([counting.port]) as running:
                at(running, phase, end(running))
                client = await running.client()
                await begin(client)
                await client.wait_event("terminated", timeout=LIMIT)
            await asyncio.sleep(REST)  # no process can start and connect sooner
        async with driving([counting.port], live=1) as driver:
            await answers(driver)
            await ends_well(counting, done)


def at(running: Session, phase: Phase, then: Callable[[], object]) -> None:
    """Call `then`, once, as soon as the engine is done with what brought rank 0 into `phase`."""
    waiting = [then]

    def moved(rank: EngineRank) -> None:
        if rank.phase is phase and waiting:
            asyncio.get_running_loop().call_soon(waiting.pop())

    each_step(running, moved)


def each_step(running: Session, moved: Callable[[EngineRank], None]) -> None:
    """Call `moved` after each change of a rank's phase."""
    core = running.engine.core
    plain = core.phase_changed

    def phase_changed(rank: EngineRank) -> None:
        plain(rank)
        moved(rank)

    core.phase_changed = phase_changed  # type: ignore[method-assign]


def end(running: Session) -> Callable[[], None]:
    """What SIGTERM does."""
    return lambda: running.driver.feed(inputs.Shutdown("test"))


async def begin(client: DapClient) -> None:
    """A handshake whose end is not waited for: who sends it will not see that."""
    await client.request("initialize", {"adapterID": "debugpy", "clientID": "test"})
    client.send("attach", {})
    client.send("configurationDone")


async def vanish_at(running: Session, phase: Phase) -> None:
    """A client that is cut off when rank 0 comes into `phase`; ends when the rank was left."""
    client = await running.client()
    at(running, phase, client._writer.transport.abort)  # as if its process were killed
    await begin(client)
    await until(lambda: not client.open, within=LIMIT, what=f"cut off in {phase.label}")
    rank = running.engine.core.ranks["job", 0]
    await until(lambda: rank.phase is Phase.IDLE, within=LIMIT, what="left")


class TestNoAttachBeforeTheAdapterIsReady:
    @pytest.mark.timeout(180)
    async def test_sixteen_ranks_found_while_they_start(self, tmp_path: Path, done: Path) -> None:
        """Known by their ports alone, and looked for from the moment they are started."""
        count, first = 16, proc_net.free_ports(16)
        ports = range(first, first + count)
        async with (
            driving(ports, {COUNTING: [COUNT]}, ready=False, settings=IMPATIENT) as driver,
            processes(ports, done, tmp_path) as ranks,
        ):
            await driver.stopped(COUNT, count, within=START)
            for rank in (0, 7, 15):
                assert await driver.value(rank, "count") == "0"
            await driver.client.request("setBreakpoints", {"source": {"path": COUNTING}})
            await driver.control("continue")
            let_end(done)
            codes = [await asyncio.wait_for(rank.wait(), LIMIT) for rank in ranks]
            assert codes == [0] * count

    async def test_attach_waits_until_the_adapter_has_met_its_rank(
        self, counting: Rank, done: Path
    ) -> None:
        """`attach` goes out after `debugpySockets` with an internal socket, never before."""
        async with session([counting.port], ready=False) as running:
            met: list[bool] = []
            rank = running.engine.core.ranks["job", 0]

            def moved(moving: EngineRank) -> None:
                if moving.phase is Phase.ATTACHING:
                    met.append(moving.connection.adapter_ready)

            each_step(running, moved)
            driver = await (await Driver.attach(running)).live()
            assert met == [True]
            assert rank.attempts == 0
            await answers(driver)
            await ends_well(counting, done)


IMPATIENT: Final = Settings(backoff_first=0.05, backoff_most=0.3)


@asynccontextmanager
async def processes(
    ports: Sequence[int], done: Path, folder: Path
) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Ranks that nobody waits for: started at the same moment, ended with the block."""
    started: list[asyncio.subprocess.Process] = []
    try:
        for port in ports:
            listen = [sys.executable, "-m", "debugpy", "--listen", f"127.0.0.1:{port}"]
            env = {
                **os.environ,
                "PYDEVD_DISABLE_FILE_VALIDATION": "1",
                "DEBUGPY_PROCESS_SPAWN_TIMEOUT": str(START),  # it gives its adapter 15 s
            }
            log = os.open(folder / f"{port}.log", os.O_WRONLY | os.O_CREAT)
            process = await asyncio.create_subprocess_exec(
                *listen, COUNTING, str(done), stdout=log, stderr=log, env=env
            )
            os.close(log)
            started.append(process)
        yield started
    finally:
        for process in started:
            if process.returncode is None:
                process.kill()
            await process.wait()


class TestNoReconnectAtOnce:
    async def test_twelve_clients_one_after_the_other(self, counting: Rank, done: Path) -> None:
        async with session([counting.port]) as running:
            for cycle in range(12):
                driver = await (await Driver.attach(running)).live()
                if cycle % 2:
                    await driver.control("pause")
                    await driver.states("stopped")
                await driver.leave()
            driver = await (await Driver.attach(running)).live()
            await answers(driver)
            await ends_well(counting, done)

    async def test_released_and_wanted_again_at_once(self, counting: Rank, done: Path) -> None:
        """The client stays: `release`, and the next one to attach finds the rank again."""
        async with driving([counting.port], live=1) as driver:
            await driver.client.request("release", {"ranks": "0"})
            await driver.leave()
            again = await (await Driver.attach(driver.session)).live()
            await answers(again)
            await ends_well(counting, done)


class TestChildrenDoNotHang:
    @pytest.mark.parametrize("kind", ["fork", "spawn", "subprocess"])
    @pytest.mark.parametrize("left", [False, True], ids=["attached", "left"])
    async def test_children_run_and_end(
        self, start_ranks: StartRanks, done: Path, kind: str, left: bool
    ) -> None:
        (rank,) = await start_ranks(1, script("children"), wait=False, arguments=[kind, str(done)])
        async with driving([rank.port], live=1) as driver:
            if left:
                await driver.leave()
                idle = driver.session.engine.core.ranks["job", 0]
                await until(lambda: idle.phase is Phase.IDLE, within=LIMIT, what="left")
            await ends_well(rank, done, "child ended with 7")

    async def test_a_child_of_a_rank_that_is_stepped_over_it(
        self, start_ranks: StartRanks, done: Path
    ) -> None:
        children = script("children")
        line = line_of(children, "start")
        (rank,) = await start_ranks(1, children, arguments=["subprocess", str(done)])
        let_end(done)
        async with driving([rank.port], {children: [line]}, stopped=line) as driver:
            await driver.control("next")
            await driver.stopped(line + 1, 1)
            assert await driver.value(0, "code") == "7"
            await driver.control("continue")
            assert await rank.ended() == 0
