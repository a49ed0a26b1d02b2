"""Kind "slow": who makes the others wait, by `why --slow` in the middle of the job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import anyio

from tests.diverge_score.expected import Case
from tests.diverge_score.traces import statements
from tests.launchers.launching import run_torch
from tests.real.driving import joined
from tests.support.processes.commands import User

STARTS: Final = 240.0
RUNS_S: Final = 600
"""A program is ended once it has been looked at."""
SAYS: Final = ("slow-rank", "healthy", "not-joined")
"""Else it has not seen enough yet."""


async def look(user: User, program: Path, nproc: int, **environ: str) -> dict[str, Any]:
    """Return what `why --slow` says, once it has seen enough calls."""
    options, seconds = ("--no-wait", "--comm", "time"), ("--seconds", str(RUNS_S))
    run = await run_torch(user, options, program, *seconds, ranks=nproc, **environ)
    try:
        await joined(run, name="scorer", timeout=STARTS)
        with anyio.fail_after(STARTS):
            while True:
                done = await user.does("why", "--slow", "--json", "--attach")
                body = json.loads(done.out) if done.out.startswith("{") else {}
                if body.get("verdict") in SAYS:
                    return {name: body[name] for name in ("verdict", "sentence", "suspects")}
    finally:
        await run.close()


def right(case: Case, found: dict[str, Any]) -> dict[str, bool]:
    """Whether it is the rank at fault, at a line that may be named; of a healthy one, silence."""
    if not case.ranks:
        return {"silent": found["verdict"] == "healthy"}
    first = found["suspects"][0] if found["suspects"] else {}
    lines = [frame["line"] for frame in first.get("stack", ())[:1]]
    return {
        "rank": found["verdict"] == "slow-rank" and first.get("ranks") == case.ranks,
        "line": not case.lines or {*lines} <= statements(case) != set(),
    }
