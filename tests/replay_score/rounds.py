"""A round: a job is taken, one rank of it is replayed, and what both printed is compared."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.launchers.launching import launch, line
from tests.launchers.tools import environment
from tests.replay_score.rows import CHANGES, MISSING, PROGRAMS, WORLD, Change, Failure, Program
from tests.support.processes.commands import Command, Done, User
from tests.support.processes.mpi import mpi_environ

TORCH: Final = "DAP_MUX_SCORE_PYTHON"
"""The Python of another release of torch."""
ENDS: Final = 400.0
FILE: Final = "taken.rank"
SCALE: Final = "scale.txt"
LAUNCHERS: Final = {
    "torch": ("torchrun", "--standalone", "--nproc-per-node", "{}"),
    "openmpi": ("mpirun", "--oversubscribe", "-n", "{}", "python"),
}
SAID: Final = re.compile(r"^(\w+) (\d+) (-?\d+) (\S+ \S+ \S+)$", re.MULTILINE)
TAKEN: Final = re.compile(r"is taken to \S+: (\d+) calls, (\d+) bytes")
PLACE: Final = re.compile(r"Parted: call \d+ of group \S+ in step \d+ is \w+ at \S+?\.py:(\d+) ")
STEP: Final = re.compile(r"Parted: call \d+ of group \S+ in step (\d+) is ")
Json = dict[str, Any]
Start = Callable[..., Awaitable[Command]]
Lines = dict[tuple[str, int], list[str]]
"""By kind and rank, what a job has printed of each step."""


def lines_of(output: str) -> Lines:
    """Return what ranks have said of their steps."""
    found: Lines = {}
    for kind, rank, step, rest in SAID.findall(output):
        found.setdefault((kind, int(rank)), []).append(f"{step} {rest}")
    return found


def variables(seed: int) -> Mapping[str, str]:
    """Return what a job of this seed finds in its environment."""
    return {"OMP_NUM_THREADS": "1", "SCORE_SEED": str(seed)}


class Place:
    """A folder with the programs, where jobs run."""

    def __init__(self, user: User, seed: int, engine: str = "torch") -> None:
        self._user = user
        other = os.environ.get(TORCH) if engine == "torch" else None
        self._engine = Path(other).parent if other else environment(engine)
        self._environ = {**variables(seed), **mpi_environ(user.folder.parent)}
        for each in PROGRAMS.glob("*.py"):
            shutil.copy(each, user.folder)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._user.folder

    async def start(self, *words: str, start: Start = launch) -> Command:
        """Start `dap-mux WORDS`."""
        return await start(self._user, self._engine, [*words], **self._environ)

    async def does(self, *words: str) -> Done:
        """Run `dap-mux WORDS` to its end."""
        return await (await self.start(*words)).ends(within=ENDS)

    async def run(
        self, program: Program, *kinds: str, rank: int | None = None, ranks: int = WORLD
    ) -> Done:
        """Run a job; `rank`: which is taken."""
        taken = () if rank is None else ("--take", str(rank), "--to", FILE)
        script = f"{program.name}.py"
        launcher = [word.format(ranks) for word in LAUNCHERS[program.engine]]
        return await self.does("run", "--no-wait", *taken, "--", *launcher, script, *kinds)

    async def replay(self, *words: str) -> Done:
        """Replay what was taken."""
        return await self.does("replay", "--no-wait", FILE, *words)


async def equal(user: User, program: Program, number: int) -> Json:
    """Compare, in each kind, what the rank has printed with what it prints alone.

    `kinds`: by kind, how many steps there were, and whether each is bit by bit the same. `as_ever`:
    whether all ranks print what they print where none is taken; asked in the first round only.
    """
    place, rank = Place(user, number, program.engine), (number + 2) % WORLD
    if program.before:
        await place.run(program, *program.before, ranks=1)
    taken = await place.run(program, *program.kinds, rank=rank)
    replayed = await place.replay()
    then, now = lines_of(taken.out), lines_of(replayed.out)
    calls, size = map(int, *TAKEN.findall(taken.err))
    kinds = {
        kind: [len(then.get((kind, rank), ())), then.get((kind, rank)) == now.get((kind, rank), [])]
        for kind in program.kinds
    }
    found: Json = {"rank": rank, "kinds": kinds, "calls": calls, "bytes": size}
    if replayed.code:
        found["said"] = replayed.err[:3000]
    if number == 0:
        found["as_ever"] = lines_of((await place.run(program, *program.kinds)).out) == then
    return found


async def failing(user: User, failure: Failure, number: int) -> Json:
    """Compare what a rank has printed until it failed; `said`: whether its end is named."""
    place = Place(user, number)
    program = Program("fails", (failure.way,))
    then = lines_of((await place.run(program, failure.way, rank=2)).out)
    replayed = await place.replay()
    at = line(place.folder / "fails.py", failure.line)
    steps = then.get((failure.way, 2), [])
    same = steps == lines_of(replayed.out).get((failure.way, 2), [])
    said = failure.says in replayed.err and f"fails.py:{at} " in replayed.err
    return {"steps": len(steps), "same": same, "said": said, "text": replayed.err[:3000]}


async def parting(user: User, changes: tuple[Change, ...] = CHANGES, number: int = 0) -> Json:
    """Take a rank once, and replay it by each changed program; by change, what was named right."""
    place = Place(user, number)
    (place.folder / SCALE).write_text("1.5")
    (place.folder / "began.txt").touch()
    await place.run(Program("parts", ()), rank=2)
    found: Json = {}
    for change in changes:
        text = (PROGRAMS / "parts.py").read_text("utf-8")
        assert change.old in text
        script = place.folder / "parted.py"
        script.write_text(text.replace(change.old, change.new), "utf-8")
        (place.folder / SCALE).write_text("1.5")
        if change.name == MISSING:
            (place.folder / SCALE).unlink()
        done = await place.replay("--", script.name)
        said = done.err + done.out  # a message is whole in what the rank prints
        lines, steps = PLACE.findall(said), STEP.findall(said)
        found[change.name] = {
            "line": lines[:1] == [str(line(script, change.line))],
            "step": steps[:1] == [str(change.step)],
            "reason": change.reason in said,
            "text": " ".join(each for each in said.splitlines() if "Parted" in each) or said[:2000],
        }
    return found
