"""A worker that has nothing of ours becomes a rank from a bundle, and is left as it was."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any, Final

import anyio
import debugpy  # noqa: T100
import pytest

from dap_mux.client import DapClient
from dap_mux.rank.frameworks import arming
from dap_mux.rank.frameworks.arming import rank_bundle

# ruff: noqa: ASYNC240  (small folders)
pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]
LIMIT: Final = 60.0  # s
WORKER: Final = """\
import importlib.util, json, pathlib, sys
spec = importlib.util.spec_from_file_location("arming", sys.argv[1])
arming = importlib.util.module_from_spec(spec)
spec.loader.exec_module(arming)
bundle = pathlib.Path(sys.argv[2]).read_bytes()

def task(number):
    doubled = 2 * number
    return doubled

for line in sys.stdin:
    order = line.strip()
    if order == "arm":
        answer = arming.arm(bundle)
    elif order == "disarm":
        answer = arming.disarm()
    else:
        answer = task(int(order))
    print(json.dumps(answer), flush=True)
"""
DOUBLED: Final = 1 + WORKER.splitlines().index("    return doubled")


class Worker:
    """A process that does as it is told, in a Python without dap-mux on its path."""

    def __init__(self, process: subprocess.Popen[str], program: Path) -> None:
        self.program = program
        self.process = process

    def tell(self, order: str) -> None:
        stream: IO[str] | None = self.process.stdin
        assert stream is not None
        stream.write(f"{order}\n")
        stream.flush()

    async def answer(self) -> Any:
        stream: IO[str] | None = self.process.stdout
        assert stream is not None
        return json.loads(await anyio.to_thread.run_sync(stream.readline))

    async def does(self, order: str) -> Any:
        self.tell(order)
        return await self.answer()


@pytest.fixture(params=["its own debugpy", "no debugpy"])
def worker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Worker]:
    program, bundle = tmp_path / "worker.py", tmp_path / "bundle"
    program.write_text(WORKER)
    bundle.write_bytes(rank_bundle(str(Path(debugpy.__file__).parent)))
    python = [sys.executable, "-I"]  # without PYTHONPATH
    if request.param == "no debugpy":
        python = [sys._base_executable, "-I", "-S"]  # type: ignore[attr-defined]
    words = [*python, str(program), str(Path(arming.__file__)), str(bundle)]
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"TMPDIR": str(tmp_path), "PATH": ""},
    )
    with process:
        yield Worker(process, program)
        process.kill()


@asynccontextmanager
async def attached(worker: Worker, port: int, condition: str) -> AsyncIterator[DapClient]:
    """A client that has set a breakpoint in the task."""
    client = await DapClient.connect("127.0.0.1", port)
    try:
        await client.handshake({"justMyCode": False}, timeout=LIMIT)
        where = {
            "source": {"path": str(worker.program)},
            "breakpoints": [{"line": DOUBLED, "condition": condition}],
        }
        await client.request("setBreakpoints", where, timeout=LIMIT)
        yield client
    finally:
        await client.close()


async def stops_and_goes_on(worker: Worker, port: int) -> None:
    """Attach, stop in the task with its values, and leave."""
    async with attached(worker, port, "number > 20") as client:
        assert await worker.does("20") == 40
        worker.tell("21")
        event = await client.wait_event("stopped", timeout=LIMIT)
        stack = await client.request("stackTrace", event, timeout=LIMIT)
        frame = stack["stackFrames"][0]
        value = await client.request(
            "evaluate", {"expression": "doubled", "frameId": frame["id"]}, timeout=LIMIT
        )
        assert (frame["line"], value["result"]) == (DOUBLED, "42")
        await client.request("disconnect", timeout=LIMIT)
    assert await worker.answer() == 42


async def test_a_worker_is_armed_disarmed_and_armed_again(worker: Worker) -> None:
    first = await worker.does("arm")
    assert first["pid"] == worker.process.pid
    assert await worker.does("arm") == first, "the second call finds the port open"
    await stops_and_goes_on(worker, first["port"])
    assert await worker.does("disarm") is None
    with (
        pytest.raises(ConnectionRefusedError),
        socket.create_connection(("127.0.0.1", first["port"])),
    ):
        pass
    again = await worker.does("arm")
    await stops_and_goes_on(worker, again["port"])


async def test_a_debugger_that_is_attached_leaves_with_the_port(worker: Worker) -> None:
    armed = await worker.does("arm")
    async with attached(worker, armed["port"], "True"):
        worker.tell("disarm")
        assert await worker.answer() is None
        assert await worker.does("21") == 42, "it does not stop any more"


async def test_nothing_is_left_of_it_on_the_disk(worker: Worker, tmp_path: Path) -> None:
    await worker.does("arm")
    assert [*tmp_path.glob(f"{arming.PREFIX}*")]
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    with anyio.fail_after(LIMIT):
        await anyio.to_thread.run_sync(worker.process.wait)
    assert [*tmp_path.glob(f"{arming.PREFIX}*")] == []
