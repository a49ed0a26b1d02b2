"""The main job in one minute: four real ranks, one debug session, and the rank that went wrong.

    make demo

It starts `dap-mux run -n 4 examples/data_parallel.py`, connects to its one port as an editor
would, stops all ranks at a conditional breakpoint, shows the value that differs, steps the ranks
together through an all-reduce, and lets them finish. On a terminal it then offers to do it again
with your own editor.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dap_mux.client import DapClient
from dap_mux.pure.rank_values import SEPARATOR, RankValue, side_by_side

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "data_parallel.py"
LISTENING = "dap-mux: one session for "
RANKS = 4
STEPS = 2  # over the all-reduce and the model's step; then the ranks' ways part

Json = dict[str, Any]


def main() -> int:
    """Run the demonstration; exit code 0 if everything went as told."""
    print(__doc__)
    asyncio.run(demonstrate())
    if sys.stdin.isatty() and sys.stdout.isatty() and wanted():
        asyncio.run(again())
    return 0


async def demonstrate() -> None:
    """Start the ranks, find the one that differs, let them finish."""
    line = line_of("world.all_reduce_mean")
    async with started("--listen", "127.0.0.1:0") as (job, address):
        host, port = address.rsplit(":", 1)
        client = await DapClient.connect(host, int(port))
        tell(f"one debug session for {RANKS} ranks on {address}")
        condition = "ranks(0-3): step == 5"
        where = {str(SCRIPT): [{"line": line, "condition": condition}]}
        await client.handshake({"justMyCode": True}, breakpoints=where)
        tell(f"breakpoint at {SCRIPT.name}:{line}, condition {condition!r}")
        ranks = await all_stopped(client)
        tell("all ranks have stopped")
        show_list(ranks)
        for expression in ("step", "batch.unit", "loss"):
            await show_values(client, expression)
        focused = await client.request("focus", {"rank": 0})  # we looked at the others meanwhile
        await step_together(client, focused["threadId"])
        await client.request("setBreakpoints", {"source": {"path": str(SCRIPT)}, "breakpoints": []})
        await client.request("continue", {"threadId": focused["threadId"]})
        tell("breakpoint cleared; all ranks run on")
        await client.wait_event("terminated", timeout=60)
        await client.disconnect()
        code = await job.wait()
        tell(f"the job has ended with exit code {code}")
        if code:
            raise SystemExit(code)


def line_of(text: str) -> int:
    """Return the number of the script's line that holds `text`."""
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@asynccontextmanager
async def started(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Start the job, yield it with the address that its session listens on, and end it."""
    words = ["-m", "dap_mux", "run", "-n", str(RANKS), *options, str(SCRIPT), "--steps", "10"]
    job = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=sys.stdout, stderr=asyncio.subprocess.PIPE
    )
    assert job.stderr is not None
    address = await address_of(job.stderr)
    relay = asyncio.create_task(pass_on(job.stderr))
    try:
        yield job, address
    finally:
        if job.returncode is None:
            job.terminate()
        await job.wait()
        await relay


async def address_of(stream: asyncio.StreamReader) -> str:
    """Return the address that `dap-mux run` says it listens on."""
    while line := (await stream.readline()).decode():
        print(line, end="")
        if line.startswith(LISTENING):
            return line.split(" on ", 1)[1].split(";")[0]
    raise SystemExit("dap-mux run ended before it listened")


async def pass_on(stream: asyncio.StreamReader) -> None:
    """Show what `dap-mux run` says."""
    while line := await stream.readline():
        print(line.decode(), end="", flush=True)


async def all_stopped(client: DapClient) -> list[Json]:
    """Wait until every rank stands: mostly one event tells all; a late rank has one of its own."""
    while True:
        ranks: list[Json] = (await client.request("list"))["ranks"]
        if all(rank["state"] == "stopped" for rank in ranks):
            return ranks
        await client.wait_event("stopped", timeout=60)


def show_list(ranks: list[Json]) -> None:
    """Print where every rank stands."""
    print()
    print("  RANK  STATE    REASON      FUNCTION  LINE")
    for rank in ranks:
        state, reason = rank["state"], rank["reason"] or ""
        function, line = rank["function"] or "", rank["line"] or ""
        print(f"  {rank['rank']:<5} {state:<8} {reason:<11} {function:<9} {line}")
    print(flush=True)


async def show_values(client: DapClient, expression: str) -> None:
    """Print the value of an expression on every rank: outliers first, equal values together."""
    body = await client.request("compare", {"expression": expression})
    values = [RankValue(one["ranks"], one["value"], one["outlier"]) for one in body["values"]]
    print(f"  {expression:<11} {SEPARATOR.join(side_by_side(values))}", flush=True)


async def step_together(client: DapClient, thread: int) -> None:
    """Step all ranks over the all-reduce: one request, everybody moves."""
    print()
    for _ in range(STEPS):
        await client.request("next", {"threadId": thread})
        lines = {rank["line"] for rank in await all_stopped(client)}
        tell(f"stepped over: all {RANKS} ranks stand on line {', '.join(map(str, lines))}")
        if len(lines) != 1:
            raise SystemExit("the ranks were torn apart")


def wanted() -> bool:
    """Ask whether to start the job once more."""
    answer = input("\nStart it again and wait for your editor? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


async def again() -> None:
    """Start the job once more, for the user's own editor."""
    print(f'In VS Code open {HERE.parent}, press F5 with "Remote Attach to Cluster"; Ctrl-C ends.')
    async with started() as (job, _):
        await job.wait()


def tell(text: str) -> None:
    """Print one line of the story."""
    print(f"* {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
