"""`python -m tests.why_foreign [NAME ...]`: `why` on faults that others have reported.

Each program of `expected` runs as four ranks. Once they have come to rest, `why` is asked of the
processes from outside, and then of the session, from inside. build/why-foreign.jsonl keeps every
answer, and what is in it is not run again. Prints the two scores and the misses.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from dap_mux.system import procfs
from tests.support.processes.commands import Command, User
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until
from tests.why_foreign.blind import BLIND
from tests.why_foreign.expected import FAULTS, HEALTHY
from tests.why_foreign.later import LATER
from tests.why_foreign.newest import NEWEST
from tests.why_foreign.rows import HERE, Fault, is_right, missing
from tests.why_score.__main__ import engines
from tests.why_score.page import PAGE, changed
from tests.why_score.ranks import ROOT, jobs
from tests.why_score.results import keep, lines_in, ranks_of

RANKS: Final = 4
STARTS_S: Final = 90.0
LOOK_S: Final = 2.0
AT_REST: Final = 0.1
"""Of a processor, in all ranks together; a rank that is busy by its fault never rests."""
RESTED: Final = 3
"""So many looks in a row."""
RESTS_S: Final = 60.0
STARTED_S: Final = 15.0
"""After which a healthy job that is busy is looked at."""
RESULTS: Final = ROOT / "build" / "why-foreign.jsonl"
WATCHED: Final = ROOT / "build" / "why-healthy.jsonl"
LOOKS_OF_A_JOB: Final = 20
HEALTHY_FOLDER: Final = "healthy"


class Round(NamedTuple):
    """Faults that were rebuilt together.

    `first`: how many were right, inside and outside, before any rule was written for these; None
    where the rules are as they were then.
    """

    name: str
    rows: Sequence[Fault]
    first: tuple[int, int] | None = None


ROUNDS: Final = (
    Round("the faults", FAULTS),
    Round("those rebuilt after the rules", LATER, (10, 10)),
    Round("those rebuilt next", NEWEST, (15, 14)),
    Round("those rebuilt last", BLIND, (7, 6)),
)
ALL: Final = tuple(row for one in ROUNDS for row in one.rows)
WAYS: Final = ("outside", "inside")
GOALS: Final = (0.92, 0.85)
"""Of the faults, inside and outside."""
LATE_PART: Final = 0.95
HEALTH: Final = "healthy"
BEGIN: Final = "<!-- The foreign score: written by `make why-foreign`. -->"
END: Final = "<!-- The end of the foreign score. -->"
# It lets the others live when one ends.
LAUNCH: Final = """\
import os, subprocess, sys
start = lambda rank: subprocess.Popen(
    [sys.executable, *sys.argv[2:]],
    env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": sys.argv[1]},
)
for each in [start(rank) for rank in range(int(sys.argv[1]))]:
    each.wait()
"""
Json = dict[str, Any]


@asynccontextmanager
async def running(folder: str, file: str) -> AsyncIterator[tuple[User, str, list[int]]]:
    """Run a program as four ranks; its user, its session, and the ranks that have come to rest."""
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="why-")))
        user = User(place)
        stack.push_async_callback(user.close)
        program = str(HERE / folder / file)
        run = await launched(user, program, TMPDIR=str(user.folder))
        pids = await _settled(run, program, rests=folder != HEALTHY_FOLDER)
        session = await run.session()
        yield user, f"{session['host']}:{session['port']}", pids


async def launched(user: User, program: str, **more: str) -> Command:
    """Run a program as four ranks, and wait until all have started."""
    environ = {
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_ports(1)),
        "DAP_MUX_BASE_PORT": str(free_ports(2 * RANKS)),
        **more,
    }
    launch = (str(jobs(engines())["gloo"].python), user.script(LAUNCH, "launch.py"), str(RANKS))
    run = await user.start("run", "--no-wait", "--", *launch, program, env=environ)
    home = user.environ["HOME"]
    await until(lambda: len(rank_pids(program, home)) == RANKS, within=STARTS_S, what="four ranks")
    return run


async def look(folder: str, file: str) -> list[Json]:
    """Run a program, and ask `why` of it in both ways."""
    async with running(folder, file) as (user, where, pids):
        asked = ([endpoint_of(pids)], [where, "--attach"])
        return [
            await _asked(user, words, file=file, way=way)
            for way, words in zip(WAYS, asked, strict=True)
        ]


async def _asked(user: User, words: Sequence[str], **known: Any) -> Json:
    """Ask once; the answer, and how long it took."""
    began = time.monotonic()
    done = await user.does("why", *words, "--json")
    body = json.loads(done.out) if done.out.startswith("{") else {"sentence": done.err}
    return {**known, "seconds": round(time.monotonic() - began, 1), "answer": body}


async def watch(file: str, looks: int) -> list[Json]:
    """Look so many times at a healthy job, by turns from outside and from inside."""
    found = []
    async with running(HEALTHY_FOLDER, file) as (user, where, pids):
        asked = ([endpoint_of(pids)], [where, "--attach"])
        for at in range(looks):
            words, way = asked[at % len(WAYS)], WAYS[at % len(WAYS)]
            found.append(await _asked(user, words, file=file, way=way))
            await asyncio.sleep(random.random())  # another moment of its step
    return found


async def watch_all(looks: int, names: Sequence[str]) -> int:
    """Look at each kind of healthy job in turn until all have had their share; 1 for an alarm."""
    share = -(-looks // len(HEALTHY))
    while True:
        seen = Counter(one["file"] for one in lines_in(WATCHED))
        left = [one for one in HEALTHY if seen[one.file] < share]
        left = [one for one in left if not names or Path(one.file).stem in names]
        if not left:
            return report_healthy()
        for one in left:
            found = await watch(one.file, min(LOOKS_OF_A_JOB, share - seen[one.file]))
            keep(WATCHED, *found)
            alarms = [_line(each["file"], each) for each in found if is_alarm(each)]
            print(f"{one.file}: {len(found)} looks; false alarms: {alarms}", flush=True)


def report_healthy() -> int:
    """Print how many looks there were, and the false alarms among them; 1 if there is one."""
    found = lines_in(WATCHED)
    alarms = [
        f"{one['file']}, {one['way']}: {_line(one['file'], one)}" for one in found if is_alarm(one)
    ]
    print(*alarms, sep="\n")
    print(f"{len(alarms)} false alarms in {len(found)} looks at healthy jobs")
    return 1 if alarms else 0


def is_alarm(one: Json) -> bool:
    return one["answer"].get("verdict") not in (HEALTH, "undecided")


def endpoint_of(pids: Sequence[int]) -> str:
    return f"pid:{','.join(map(str, pids))}"


async def _settled(run: Command, program: str, *, rests: bool) -> list[int]:
    """Wait until the ranks use no processor if it `rests`; their pids."""
    pids = rank_pids(program, run.user.environ["HOME"])
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    busy = min(max(1.0, load), 3.0)  # with more to do it takes longer
    deadline = time.monotonic() + (RESTS_S if rests else STARTED_S) * busy
    used, at_rest = cpu_of(pids), 0
    while at_rest < RESTED and time.monotonic() < deadline:
        await asyncio.sleep(LOOK_S)
        before, used = used, cpu_of(pids)
        at_rest = at_rest + 1 if used - before < AT_REST * LOOK_S else 0
    return [pid for pid in pids if procfs.exists(pid)]


def rank_pids(program: str, home: str) -> list[int]:
    """The ranks' own processes, not what they have forked."""
    found = [pid for pid in procfs.pids() if (procfs.command_line(pid) or ())[-1:] == (program,)]
    ours = {pid: procfs.environ(pid) for pid in found}
    of_user = {pid for pid, environ in ours.items() if environ.get("HOME") == home}
    ranks = {pid for pid in of_user if "RANK" in ours[pid]}
    return sorted(pid for pid in ranks if procfs.parent(pid) not in ranks)


def cpu_of(pids: Sequence[int]) -> float:
    """The seconds that processes have used."""
    stats = (procfs.stat(pid) for pid in pids)
    return sum(one.cpu_seconds for one in stats if one is not None)


def accused(body: Json) -> frozenset[int]:
    """The ranks of the first suspect."""
    suspects = body.get("suspects") or []
    return ranks_of(str(suspects[0]["ranks"]), RANKS) if suspects else frozenset()


def text_of(body: Json) -> str:
    """All that an answer says."""
    return json.dumps([body.get(name) for name in ("verdict", "sentence", "evidence", "suspects")])


def verdict_on(row: Fault, body: Json) -> str:
    """Say what is wrong with an answer; "" if nothing is."""
    if is_right(row, accused(body), text_of(body)):
        return ""
    who = ",".join(map(str, sorted(accused(body)))) or "nobody"
    return f"accuses {who}; lacks {missing(row, text_of(body))}: {body.get('sentence')}"


def kept() -> dict[tuple[str, str], Json]:
    """The answers that are there."""
    return {(one["file"], one["way"]): one for one in lines_in(RESULTS)}


async def score(names: Sequence[str]) -> int:
    """Ask what has not been asked, and print the score; 1 if it is below the goal."""
    rows = [("faults", row.file) for row in ALL] + [("healthy", row.file) for row in HEALTHY]
    for folder, file in rows:
        if (names and Path(file).stem not in names) or (file, WAYS[-1]) in kept():
            continue
        try:
            found = await look(folder, file)
        except (AssertionError, TimeoutError) as error:
            print(f"{file}: not run: {error}", flush=True)
            continue
        keep(RESULTS, *found)
        for one in found:
            print(f"{file}, {one['way']}, {one['seconds']} s: {_line(file, one)}", flush=True)
    return report()


def _line(file: str, one: Json) -> str:
    row = next((each for each in ALL if each.file == file), None)
    if row is not None:
        return verdict_on(row, one["answer"]) or "right"
    verdict = one["answer"].get("verdict")
    return "right" if verdict == HEALTH else f"{verdict}: {one['answer'].get('sentence')}"


def report(*, page: bool = False) -> int:
    """Print how often each way is right, and the misses; write them to docs/why.md as well."""
    told = [line for each in ROUNDS for line in score_of(each)]
    for one in told:
        print(one)
    if page:
        write(told)
    return 0 if all(map(enough, WAYS)) and not report_healthy() else 1


def score_of(one: Round) -> list[str]:
    """Return a line for each way: how many of these rows it got right, and which it did not."""
    found, lines = kept(), []
    for way, first in zip(reversed(WAYS), one.first or (None, None), strict=True):
        asked = [row for row in one.rows if (row.file, way) in found]
        missed = [row.file for row in asked if verdict_on(row, found[row.file, way]["answer"])]
        named = f"; missed: {', '.join(Path(file).stem for file in missed)}" if missed else ""
        right = len(asked) - len(missed)
        before = "" if first is None else f" ({first} when first asked)"
        told = f"rank and cause right in {right} of {len(asked)}{before}{named}"
        lines.append(f"{way}, {one.name}: {told}")
    return lines


def enough(way: str) -> bool:
    """Whether a way is right as often as it should be."""
    found, goal = kept(), dict(zip(reversed(WAYS), GOALS, strict=True))[way]
    asked = [row for row in FAULTS if (row.file, way) in found]
    right = sum(not verdict_on(row, found[row.file, way]["answer"]) for row in asked)
    return right >= goal * len(asked)


def write(told: Sequence[str]) -> None:
    """Write the scores between the marks in docs/why.md."""
    looks = lines_in(WATCHED)
    alarms = sum(map(is_alarm, looks))
    slowest = sorted(one["seconds"] for one in kept().values())
    late = slowest[int(len(slowest) * LATE_PART)] if slowest else 0.0
    lines = [
        *(f"- {line}" for line in told),
        f"- {alarms} false alarms in {len(looks)} looks at {len(HEALTHY)} kinds of healthy jobs",
        f"- 95 % of the answers took at most {late:.1f} s",
    ]
    part = "\n".join([BEGIN, *lines, END])
    PAGE.write_text(changed(PAGE.read_text("utf-8"), part, BEGIN, END), "utf-8")


def main(words: Sequence[str]) -> int:
    """Ask, and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.why_foreign", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--page", action="store_true", help="write the score to docs/why.md")
    parser.add_argument("--healthy", type=int, metavar="LOOKS", help="looks at healthy jobs only")
    options = parser.parse_args(words)
    if options.healthy:
        return asyncio.run(watch_all(options.healthy, options.names))
    if options.page:
        return report(page=True)
    return asyncio.run(score(options.names))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
