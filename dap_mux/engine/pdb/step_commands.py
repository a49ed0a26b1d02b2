"""pdb's commands that move: each rank named steps, runs on or jumps, and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.sync import OWN
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.pdb.command import (
    FILE_LINE,
    LINE_TIMEOUT,
    RUNNING,
    Invocation,
    Run,
    problem_of,
    stands,
    tell_places,
)
from dap_mux.engine.pdb.value_commands import Displays
from dap_mux.engine.state.rank import Rank, Reply, Stop
from dap_mux.engine.stops.control import Control, StopWaiters, held
from dap_mux.engine.values.replies import Answer, Answers, ReplyCollector, in_one_line
from dap_mux.pure.errors import UsageError
from dap_mux.pure.pathmap import is_windows
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import GotoTargets
from dap_mux.pure.rank_sets import RankId

HELD: Final = (
    "is held at an uncaught exception, and ends when it runs on: name it alone, or use `release`"
)
STOPPED: Final = "stopped"
NOWHERE: Final = "has no code there, so it stays"
_LIMIT: Final = 5.0  # s


def place_of(invocation: Invocation) -> tuple[str, int] | None:
    """Return the file and line of an argument, None where it names no file. Raises UsageError."""
    match = FILE_LINE.fullmatch(invocation.argument)
    if match is None:
        return None
    file = match["file"].strip()
    if not (file.startswith(("/", "file:")) or is_windows(file)):
        raise UsageError(f"'unt' needs the full path of a file, not {file!r}")
    return (
        invocation.client.translation.path(file) if invocation.client.translation else file
    ), int(match["line"])


class StepCommands(Struct, eq=False):
    """Commands after which a rank stands elsewhere."""

    stop_waiters: StopWaiters
    control: Control
    edits: BreakpointEdits
    displays: Displays

    @property
    def commands(self) -> Mapping[str, Run]:
        """Return the handler of each command."""
        return {
            "n": partial(self._step, "next"),
            "s": partial(self._step, "stepIn"),
            "r": partial(self._step, "stepOut"),
            "c": self._continue,
            "pause": self._pause,
            "unt": self._until,
            "j": self._jump,
        }

    def _continue(self, invocation: Invocation) -> None:
        _no_argument(invocation)
        collector = invocation.collector()
        ready = _resumable(invocation, collector)
        for rank in ready:
            collector.answer(rank.rank_id, Answer(RUNNING))
        self.control.client_events.resumed(self.control.resume(ready))

    def _pause(self, invocation: Invocation) -> None:
        """Answered at once: a rank blocked in C stops when its call returns."""
        _no_argument(invocation)
        collector = invocation.collector()
        live = [rank for rank in invocation.ranks if rank.phase.live]
        self.control.pause_ranks(live)
        for rank in invocation.ranks:
            if rank in live:
                collector.answer(rank.rank_id, Answer(rank.state))
            else:
                collector.fail(rank.rank_id, problem_of(rank, invocation.command))

    def _step(self, command: str, invocation: Invocation) -> None:
        _no_argument(invocation)
        _Moving(self, invocation).step(command)

    def _until(self, invocation: Invocation) -> None:
        place = place_of(invocation)
        if place is not None:
            self._run_to(invocation, *place)
            return
        if invocation.argument and not invocation.argument.isdecimal():
            raise UsageError(
                f"'unt' takes a line number, FILE:LINE or nothing, not {invocation.argument!r}"
            )
        self._run_down(invocation, int(invocation.argument or 0))

    def _run_to(self, invocation: Invocation, path: str, line: int) -> None:
        """A breakpoint for one stop, and on. Who cannot have the breakpoint stays where it is."""
        collector = invocation.collector()
        ranks = _resumable(invocation, collector)
        if not ranks:
            return
        limit = min(_LIMIT, invocation.timeout * 0.9)
        stops = {rank.id: rank.stop for rank in ranks}
        item = self.edits.make(OWN, path, {"line": line}, ranks, "stop")

        def in_place() -> None:
            # Who ran, and stands by now: on that line or before it, its one stop is over.
            there = [rank for rank in ranks if rank.stop and rank.stop is not stops[rank.id]]
            ready = [rank for rank in ranks if rank not in there and item.verified_in(rank.id)]
            without = [rank for rank in ranks if rank not in there + ready]
            for rank in without:
                why = item.states.get(rank.id, {}).get("message")
                collector.fail(rank.rank_id, f"{NOWHERE}: {why}" if why else NOWHERE)
            if without:
                self.edits.cut(path, item, {rank.rank_id for rank in without})
                self.edits.send(path, without, lambda: None, limit)
            resumed = self.control.resume(ready)
            for rank in there + ready:
                collector.answer(rank.rank_id, Answer(STOPPED if rank in there else RUNNING))
            self.control.client_events.resumed(resumed)

        self.edits.send(path, ranks, in_place, limit)

    def _run_down(self, invocation: Invocation, line: int) -> None:
        """Run on to a line further down, or out of the function, whichever comes first.

        That is a step out with breakpoints on all those lines, which the next stop takes away.
        """
        moving = _Moving(self, invocation)
        limit = min(LINE_TIMEOUT, invocation.timeout / 2)
        stopped = {rank.rank_id: rank for rank in invocation.stopped(moving.collector)}

        def text(rank: Rank) -> str:
            assert rank.stop is not None
            assert rank.stop.frames
            return invocation.view("lines_from", line or rank.stop.frames[0].line + 1)

        def found(answers: Answers) -> None:
            places: dict[tuple[str, str], list[Rank]] = {}
            for id, message in answers.errors.items():
                moving.collector.fail(id, message)
            for id, answer in answers.values.items():
                stop = stopped[id].stop
                if stop and stop.frames:
                    places.setdefault((stop.frames[0].path, answer.value), []).append(stopped[id])
            ready = [rank for ranks in places.values() for rank in ranks]
            join = Join(invocation.core, places, lambda _: moving.step("stepOut", ready))
            for (path, lines), ranks in places.items():
                for each in lines.split():
                    self.edits.make(OWN, path, {"line": int(each)}, ranks, "stop")
                self.edits.send(path, ranks, partial(join.arrive, (path, lines)), limit)

        invocation.fan_out.evaluate(stopped.values(), text, found, limit, raw=True)

    def _jump(self, invocation: Invocation) -> None:
        if not invocation.argument.isdecimal():
            raise UsageError(f"'j' takes a line number, not {invocation.argument!r}")
        _Moving(self, invocation).jump(int(invocation.argument))


def _resumable(invocation: Invocation, collector: ReplyCollector) -> list[Rank]:
    """Return the ranks that can be let run; the others fail, each with the reason."""
    ready = []
    for rank in invocation.ranks:
        if not rank.phase.live:
            collector.fail(rank.rank_id, problem_of(rank, invocation.command))
        elif len(invocation.ranks) > 1 and held(rank):
            collector.fail(rank.rank_id, HELD)
        else:
            ready.append(rank)
    return ready


def _no_argument(invocation: Invocation) -> None:
    if invocation.argument:
        name, argument = invocation.command, invocation.argument
        raise UsageError(f"{name!r} takes no argument; to print a value, use p {name} {argument}")


# A step is answered when every rank has arrived, with where they stand; who takes longer than a
# moment is told as running, for it may wait for ranks that were not named. Stops are told by the
# usual events.
class _Moving:
    """One command on its way: who has not arrived, and who has not even heard of it."""

    def __init__(self, steps: StepCommands, invocation: Invocation) -> None:
        self._steps = steps
        self._invocation = invocation
        self.collector = invocation.collector()
        self._pending: Join[RankId] | None = None  # while any may still arrive in time
        self._unheard: set[RankId] = set()
        self._arrived: list[Rank] = []

    def step(self, command: str, ranks: list[Rank] | None = None) -> None:
        """Let the stopped ranks step as one; those who are still on a step follow."""
        named = self._invocation.ranks if ranks is None else ranks
        ready = [rank for rank in named if rank.phase.live and rank.stop]
        late = [rank for rank in named if ready and not rank.stop and rank.run]
        for rank in named:
            if rank not in ready and rank not in late:
                self.collector.fail(rank.rank_id, problem_of(rank, self._invocation.command))
        if ready:
            self._watch(ready + late)
            self._unheard = {rank.rank_id for rank in ready}
            self._steps.control.step_named(ready, late, command, self._heard)

    def jump(self, line: int) -> None:
        """Go on from this line of the innermost frame, without running what is between."""
        ranks = self._invocation.stopped(self.collector)
        self._watch(ranks)
        self._unheard = {rank.rank_id for rank in ranks}
        for rank in ranks:
            assert rank.stop is not None
            assert rank.stop.frames
            where: Body = {"source": {"path": rank.stop.frames[0].path}, "line": line}
            then = partial(self._target, rank, rank.stop, line)
            to_ranks.ask_for(self._invocation.core, rank, "gotoTargets", where, GotoTargets, then)

    def _target(
        self, rank: Rank, stop: Stop, line: int, said: GotoTargets | None, reply: Reply
    ) -> None:
        found = said.targets if said else None
        if not found or rank.stop is not stop:
            self._gone(rank, reply.problem or f"no line {line} to jump to")
            return
        target = {"threadId": stop.thread, "targetId": found[0].id}
        to_ranks.ask(self._invocation.core, rank, "goto", target, partial(self._heard, rank))

    # Places of ranks

    def _watch(self, ranks: list[Rank]) -> None:
        core = self._invocation.core
        for rank in ranks:
            self._steps.stop_waiters.wait(rank, self._arrive, rank.stop)
        moment = min(core.settings.step_grace, self._invocation.timeout / 2)
        self._pending = Join(core, (rank.rank_id for rank in ranks), self._moment_over, moment)

    def _heard(self, rank: Rank, reply: Reply) -> None:
        if reply.no_reply_reason and rank.phase.live:
            return  # silent: it will be missing
        self._unheard.discard(rank.rank_id)
        if not reply.ok:
            self._gone(rank, reply.no_reply_reason or in_one_line(reply.message))
        elif self._pending and self._pending.over and rank.rank_id in self._pending.waiting:
            self.collector.answer(rank.rank_id, Answer(RUNNING))

    def _gone(self, rank: Rank, why: str) -> None:
        self.collector.fail(rank.rank_id, why)
        self._no_longer_pending(rank)

    def _arrive(self, rank: Rank) -> None:
        if self._pending is None or rank.rank_id not in self._pending.waiting:
            return
        if stands(rank):
            self._arrived.append(rank)
        else:
            self.collector.answer(rank.rank_id, Answer(rank.state))
        self._no_longer_pending(rank)

    def _no_longer_pending(self, rank: Rank) -> None:
        if self._pending is not None:
            self._pending.arrive(rank.rank_id)
            if self._pending.over:
                self._tell()

    def _moment_over(self, late: frozenset[RankId]) -> None:
        for id in late - self._unheard:
            self.collector.answer(id, Answer(RUNNING))
        self._tell()

    def _tell(self) -> None:
        """Tell where those stand who have arrived since, with what they display."""
        arrived, self._arrived = self._arrived, []
        ranks = [rank for rank in arrived if self.collector.awaits(rank.rank_id)]
        if ranks:
            told = partial(tell_places, self._invocation, self.collector, ranks)
            self._steps.displays.look(self._invocation, ranks, LINE_TIMEOUT, told)
