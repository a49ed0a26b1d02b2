"""Kinds "replicas" and "runs": where these part, by `diverge --locate` of traces made here."""

from __future__ import annotations

import ast
import atexit
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

from dap_mux.frontends.cli.diverge import of_replicas, of_runs
from dap_mux.session.traces import read_trace
from tests.diverge_score.expected import CASES, Case
from tests.launchers.tools import environment
from tests.support.processes.commands import User

FORKED: Final = Path(__file__).with_name("forked.py")
BY_PATH: Final = {case.path: case for case in CASES if case.kind in ("replicas", "runs", "healthy")}


@cache
def parent() -> subprocess.Popen[str]:
    """Return the process that has imported torch, and forks ranks."""
    command = [environment("torch") / "python", FORKED]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(started.kill)
    return started


def trace_of(
    folder: Path,
    program: Path,
    nproc: int,
    variables: dict[str, str],
    *arguments: str,
    mode: str = "operations",
) -> Path:
    """Run a program; return the folder of its trace."""
    there = folder / "-".join(("trace", str(nproc), *arguments))
    job = {
        "folder": str(there), "program": str(program), "nproc": nproc, "arguments": arguments,
        "env": variables, "mode": mode,
    }  # fmt: skip
    stdin, stdout = parent().stdin, parent().stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(json.dumps(job) + "\n")
    stdin.flush()
    codes = json.loads(stdout.readline())
    assert codes == [0] * nproc, Path(f"{there}.log").read_text("utf-8")
    return there


async def look(user: User, program: Path, nproc: int, **variables: str) -> dict[str, Any]:
    """Return the answer on the ranks of a program, or on it and what it should have been."""
    trace = read_trace(trace_of(user.folder, program, nproc, variables))
    if BY_PATH[program].kind != "runs":
        return of_replicas(trace)
    return of_runs(read_trace(trace_of(user.folder, program, nproc, variables, "--good")), trace)


def right(case: Case, body: dict[str, Any]) -> dict[str, bool]:
    """Compare an answer with what is right: line, step and rank."""
    if not body["differs"]:
        return dict.fromkeys(("line", "step", "rank", "all"), False)
    places = [body.get(name, "") for name in ("place", "other", "also")]
    accepted = statements(case)
    found = {
        "line": any(line_of(place, case) in accepted for place in places),
        "step": not case.steps or (body["step"] or 0) in case.steps,
        "rank": is_named(body["ranks"], case),
    }
    return {**found, "all": all(found.values())}


def statements(case: Case) -> set[int]:
    """The lines that may be named, with all others of their statements."""
    found = {*case.lines}
    for node in ast.walk(ast.parse(case.path.read_text("utf-8"))):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if not found.isdisjoint(lines):
                found.update(lines)
    return found


def is_named(ranks: list[int], case: Case) -> bool:
    """Whether it names the ranks at fault; of two replicas, it cannot know which one is right."""
    if not case.ranks or (case.kind == "replicas" and case.nproc == 2):
        return True
    first, _, last = case.ranks.partition("-")
    return sorted(ranks) == [*range(int(first), int(last or first) + 1)]


def line_of(place: str, case: Case) -> int | None:
    """The number of a line of the program itself."""
    path, _, rest = place.partition(":")
    return int(rest.split()[0]) if Path(path).name == case.path.name and rest else None
