"""`python -m tests.agent_score [NAME ...]`: a scripted agent on planted bugs of distributed jobs.

Each program of `expected` runs as eight ranks. The agent gets the tools of `dap-mux mcp`, the
session's address and the symptom. The baseline gets stacks by py-spy, and logs.
build/agent-score.jsonl keeps every answer, and what is in it is not run again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcp import Client

from dap_mux.frontends.cli.mcp import CommandLine
from dap_mux.frontends.mcp.server import make_server
from dap_mux.system.config import Config
from tests.agent_score import baseline, simulated
from tests.agent_score.agent import Agent
from tests.agent_score.expected import BUGS, Bug
from tests.agent_score.jobs import Running, printed, running
from tests.agent_score.rules import Named
from tests.agent_score.score import (
    BASELINE,
    FEW,
    MANY,
    OF_MANY,
    RESULTS,
    TOOLS,
    WAYS,
    kept,
    right,
    summary,
    table,
    write,
)
from tests.why_score.results import keep

BEFORE: Final = (
    "first run: rank and line in 8 of 33, cause in 15, all three in 5",
    "late bugs, before any change for them: rank and line in 1 of 5, cause in 4, all three in 1",
    "late bugs, second round, unchanged: rank and line in 4 of 5, cause in 3, all three in 3",
)
"""The scores of bugs that came after the agent."""
Json = dict[str, Any]


async def by_tools(job: Running, bug: Bug) -> Json:
    """Let the agent look for a bug; what it has named, its calls, and the bytes of the answers."""
    os.environ["XDG_RUNTIME_DIR"] = job.user.environ["XDG_RUNTIME_DIR"]
    server = make_server(CommandLine(Config.load({}, {}, cwd=Path.cwd(), home=None)))
    trail: list[Json] = []
    async with Client(server) as client:

        async def call(tool: str, **arguments: Any) -> Json:
            result = await client.call_tool(tool, arguments)
            [content] = result.content
            assert content.type == "text"
            trail.append({"tool": tool, "arguments": arguments, "answer": content.text})
            answer: Json = result.structured_content or {}
            return answer

        began = time.monotonic()
        try:
            named = await Agent(call, job.address).find(bug.symptom, bug.watch, bug.at)
        except Exception:  # noqa: BLE001  (a rule that fails has named nothing)
            traceback.print_exc()
            named = Named("", "", 0, "")
    return {
        "bug": bug.name,
        "way": TOOLS,
        "named": named._asdict(),
        "calls": len(trail),
        "bytes": sum(len(one["answer"].encode()) for one in trail),
        "seconds": round(time.monotonic() - began, 1),
        "trail": trail,
    }


async def by_hand(job: Running, bug: Bug) -> Json:
    """Apply the same rules to what py-spy and the logs show."""
    stands = bug.symptom in ("hang", "slow")
    dumps = await job.dumps() if stands else {}
    logs = job.logs() if stands else await printed(job)
    text = job.program.read_text("utf-8")
    named = baseline.named(bug.symptom, bug.at, str(job.program), text, dumps, logs)
    size = sum(map(len, [*dumps.values(), *logs.values()]))
    return {
        "bug": bug.name,
        "way": BASELINE,
        "named": named._asdict(),
        "calls": len(dumps) + len(logs),
        "bytes": size + len(text),
    }


async def look(bug: Bug, way: str) -> Json:
    """Run a bug, and look for it."""
    stands = bug.symptom in ("hang", "slow")
    async with running(bug, waits=way == TOOLS and not stands) as job:
        return await (by_tools if way == TOOLS else by_hand)(job, bug)


async def main(words: Sequence[str]) -> int:
    """Look for what has not been looked for; print the score, and write it to the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.agent_score", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--page", action="store_true", help="write the score to docs/agents.md")
    parser.add_argument("--many", action="store_true", help="at 512 simulated ranks")
    parser.add_argument("--early", action="store_true", help="without the bugs that came late")
    parser.add_argument("--way", action="append", choices=WAYS, help="both if not given")
    options = parser.parse_args(words)
    if options.many:
        await look_at_many()
    for bug in BUGS if not (options.many or options.page) else ():
        chosen = not options.names or bug.name in options.names
        if chosen and not (options.early and bug.late):
            for way in options.way or WAYS:
                if (bug.name, way) not in kept() and bug.path.exists():
                    await _keep(bug, way)
    bugs = [bug for bug in BUGS if not bug.late]
    for way in WAYS:
        print(f"{way}: {summary(kept(), bugs, way)}")
    print(table(kept()))
    if options.page:
        write(kept(), BEFORE)
    return 0


async def _keep(bug: Bug, way: str) -> None:
    """Look for a bug in one way, and keep what is named."""
    try:
        found = await look(bug, way)
    except (AssertionError, TimeoutError) as error:
        print(f"{bug.name}, {way}: not run: {error}", flush=True)
        return
    _write(bug, found)


def _write(bug: Bug, found: Json) -> None:
    keep(RESULTS, found)
    named, calls, way = found["named"], found["calls"], found["way"]
    print(f"{bug.name}, {way}, {calls} calls: {right(bug, found)}: {named}", flush=True)


async def look_at_many() -> None:
    """Look for some bugs at 512 ranks that answer as eight real ones did."""
    for bug in BUGS:
        if bug.name in OF_MANY and (bug.name, MANY) not in kept():
            few, many = await simulated.look(bug, by_tools)
            _write(bug, {**few, "way": FEW})
            _write(bug, {**many, "way": MANY})


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
