"""Programs that make NaN or infinity: does a rank stop first, before it spreads, and where?"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio

from tests.launchers.launching import run_torch
from tests.real.driving import joined
from tests.support.processes.commands import Command, User, bodies

STARTS: Final = 240.0
NOBODY_ELSE_S: Final = 2.0
"""For so long after the first stop others of the same step may come to theirs."""
ENDS: Final = ("lost", "exited")
_MADE: Final = re.compile(r"(?:made by|given to) .*? at (\S+):(\d+)")
_STEP: Final = re.compile(r"step (\d+)")


@asynccontextmanager
async def started(user: User, program: Path, nproc: int, **environ: str) -> AsyncIterator[Command]:
    """A program under `dap-mux run --locate`; its ranks are ended afterwards."""
    run = await run_torch(user, ["--locate"], program, ranks=nproc, **environ)
    try:
        yield run
    finally:
        await run.close()


async def look(user: User, program: Path, nproc: int, **environ: str) -> dict[str, Any]:
    """Return `ranks` that have stopped, the `lines` named, the `step`, and what was said."""
    async with started(user, program, nproc, **environ) as run:
        client = await joined(run, name="scorer", timeout=STARTS)
        rows: list[dict[str, Any]] = []
        with anyio.fail_after(STARTS):
            while not any(row["state"] in ("stopped", *ENDS) for row in rows):
                await anyio.sleep(0.1)
                rows = (await client.request("list", timeout=STARTS))["ranks"]
        await anyio.sleep(NOBODY_ELSE_S)
        rows = (await client.request("list", timeout=STARTS))["ranks"]
        stopped = [row for row in rows if row["state"] == "stopped"]
        texts = []
        for row in stopped:
            asked = {"threadId": row["threadId"]}
            said = await client.request("exceptionInfo", asked, timeout=STARTS)
            texts.append(str(said.get("description")))
        output = [body["output"] for body in bodies(client, "output")]
    return {
        "ranks": [row["rank"] for row in stopped],
        "lines": [int(line) for path, line in _places(texts) if Path(path) == program],
        "steps": [int(step) for text in texts for step in _STEP.findall(text)[:1]],
        "texts": texts,
        "output": [text for text in output if "not finite" in text][:4],
    }


def _places(texts: Sequence[str]) -> list[tuple[str, str]]:
    return [found for text in texts for found in _MADE.findall(text)]


def right(case: Any, found: dict[str, Any]) -> dict[str, bool]:
    """Whether the ranks are those at fault, the line may be named, and it is the step."""
    ranks = [*range(case.nproc)] if case.ranks == "" else [int(case.ranks)]
    return {
        "rank": found["ranks"] == ranks,
        "line": bool(found["lines"]) and {*found["lines"]} <= {*case.lines},
        "step": case.step is None or {*found["steps"]} == {case.step},
    }
