"""The words of pdb that move: each rank named steps, runs on or jumps, and nobody else.

A step is answered when every rank has arrived, with where they stand; who takes longer than a
moment is told as running, for it may wait for ranks that were not named. Stops are told by the
usual events.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dap_mux.engine.breakpoints.edits import Drawer
from dap_mux.engine.breakpoints.sync import OWN
from dap_mux.engine.commands.pdb.command import RUNNING, Order, Word, problem_of, stands
from dap_mux.engine.commands.pdb.locations import LINE_TIMEOUT, Places
from dap_mux.engine.commands.pdb.run_to import HELD, RunTo, place_of
from dap_mux.engine.commands.pdb.value_commands import Displays
from dap_mux.engine.evaluate.fan_out import Answer, Answers, Asking, Gathering, in_one_line
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.state.model import Body, Rank, Reply, Stop
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.session import Core
from dap_mux.engine.stops.control import Control, held
from dap_mux.engine.stops.stop_waiters import Arrivals
from dap_mux.errors import UsageError
from dap_mux.protocol.rank_messages import GotoTargets
from dap_mux.rank_sets import RankId


class StepWords:
    """Words after which a rank stands elsewhere."""

    def __init__(
        self,
        core: Core,
        asking: Asking,
        arrivals: Arrivals,
        control: Control,
        drawer: Drawer,
        places: Places,
        displays: Displays,
    ) -> None:
        self.core = core
        self.arrivals = arrivals
        self.control = control
        self.drawer = drawer
        self.asking = asking
        self.places = places
        self._displays = displays
        self.words: Mapping[str, Word] = {
            "n": partial(self._step, "next"),
            "s": partial(self._step, "stepIn"),
            "r": partial(self._step, "stepOut"),
            "c": self._continue,
            "pause": self._pause,
            "unt": self._until,
            "j": self._jump,
        }

    def _continue(self, order: Order) -> None:
        _no_argument(order)
        gathering = order.gathering()
        resumed = []
        for rank in order.ranks:
            if rank.phase is not Phase.LIVE:
                gathering.fail(rank.rank_id, problem_of(rank, order.word))
            elif len(order.ranks) > 1 and held(rank):
                gathering.fail(rank.rank_id, HELD)
            else:
                if self.control.resume(rank):
                    resumed.append(rank)
                gathering.answer(rank.rank_id, Answer(RUNNING))
        self.control.tell_resumed(resumed)

    def _pause(self, order: Order) -> None:
        """Answered at once: a rank blocked in C stops when its call returns."""
        _no_argument(order)
        gathering = order.gathering()
        live = [rank for rank in order.ranks if rank.phase is Phase.LIVE]
        self.control.pause_ranks(live)
        for rank in order.ranks:
            if rank in live:
                gathering.answer(rank.rank_id, Answer(rank.state))
            else:
                gathering.fail(rank.rank_id, problem_of(rank, order.word))

    def _step(self, command: str, order: Order) -> None:
        _no_argument(order)
        _Moving(self, order).step(command)

    def _until(self, order: Order) -> None:
        place = place_of(order)
        if place is not None:
            RunTo(self.drawer, self.control, order, *place)
            return
        if order.argument and not order.argument.isdecimal():
            raise UsageError(
                f"'unt' takes a line number, FILE:LINE or nothing, not {order.argument!r}"
            )
        _Until(self, order, int(order.argument or 0))

    def _jump(self, order: Order) -> None:
        if not order.argument.isdecimal():
            raise UsageError(f"'j' takes a line number, not {order.argument!r}")
        _Moving(self, order).jump(int(order.argument))

    def tell(self, order: Order, gathering: Gathering, ranks: list[Rank]) -> None:
        """Answer with the places of these ranks, and what they display."""
        if ranks:
            told = partial(self.places.tell, gathering, ranks)
            self._displays.look(order, ranks, LINE_TIMEOUT, told)


def _no_argument(order: Order) -> None:
    if order.argument:
        told = (
            f"{order.word!r} takes no argument; for a value write p {order.word} {order.argument}"
        )
        raise UsageError(told)


class _Until:
    """`unt`: run on to a line further down, or out of the function, whichever comes first.

    That is a step out with breakpoints on all those lines, which the next stop takes away.
    """

    def __init__(self, steps: StepWords, order: Order, line: int) -> None:
        self._steps = steps
        self._line = line
        self._moving = _Moving(steps, order)
        self._limit = min(LINE_TIMEOUT, order.timeout / 2)
        ranks = order.stopped(self._moving.gathering)
        self._ranks = {rank.rank_id: rank for rank in ranks}
        steps.asking.evaluate(ranks, self._text, self._found, self._limit, raw=True)

    def _text(self, rank: Rank) -> str:
        assert rank.stop is not None
        assert rank.stop.frames
        return self._steps.places.expressions.lines_from(self._line or rank.stop.frames[0].line + 1)

    def _found(self, answers: Answers) -> None:
        places: dict[tuple[str, str], list[Rank]] = {}
        for id, message in answers.errors.items():
            self._moving.gathering.fail(id, message)
        for id, answer in answers.values.items():
            rank = self._ranks[id]
            if rank.stop and rank.stop.frames:
                path = rank.stop.frames[0].path
                places.setdefault((path, answer.value), []).append(rank)
        self._open = set(places)
        self._ready = [rank for ranks in places.values() for rank in ranks]
        for (path, lines), ranks in places.items():
            for line in lines.split():
                self._steps.drawer.make(OWN, path, {"line": int(line)}, ranks, "stop")
            then = partial(self._in_place, (path, lines))
            self._steps.drawer.send(path, ranks, then, self._limit)

    def _in_place(self, place: tuple[str, str]) -> None:
        self._open.discard(place)
        if not self._open:
            self._moving.step("stepOut", self._ready)


class _Moving:
    """One command on its way: who has not arrived, and who has not even heard of it."""

    def __init__(self, steps: StepWords, order: Order) -> None:
        self._steps = steps
        self._order = order
        self.gathering = order.gathering()
        self._flying: set[RankId] = set()
        self._unheard: set[RankId] = set()
        self._arrived: list[Rank] = []
        self._timer: int | None = None
        self._over = False

    def step(self, command: str, ranks: list[Rank] | None = None) -> None:
        """Let the stopped ranks step as one; those who are still on a step follow."""
        named = self._order.ranks if ranks is None else ranks
        ready = [rank for rank in named if rank.phase is Phase.LIVE and rank.stop]
        late = [rank for rank in named if ready and not rank.stop and rank.run]
        for rank in named:
            if rank not in ready and rank not in late:
                self.gathering.fail(rank.rank_id, problem_of(rank, self._order.word))
        if ready:
            self._watch(ready + late)
            self._unheard = {rank.rank_id for rank in ready}
            self._steps.control.step_named(ready, late, command, self._heard)

    def jump(self, line: int) -> None:
        """Go on from this line of the innermost frame, without running what is between."""
        ranks = self._order.stopped(self.gathering)
        self._watch(ranks)
        self._unheard = {rank.rank_id for rank in ranks}
        for rank in ranks:
            assert rank.stop is not None
            assert rank.stop.frames
            where: Body = {"source": {"path": rank.stop.frames[0].path}, "line": line}
            then = partial(self._target, rank, rank.stop, line)
            to_ranks.ask_for(self._steps.core, rank, "gotoTargets", where, GotoTargets, then)

    def _target(
        self, rank: Rank, stop: Stop, line: int, said: GotoTargets | None, reply: Reply
    ) -> None:
        found = said.targets if said else None
        if not found or rank.stop is not stop:
            self._gone(rank, reply.problem or f"no line {line} to jump to")
            return
        target = {"threadId": stop.thread, "targetId": found[0].id}
        to_ranks.ask(self._steps.core, rank, "goto", target, partial(self._heard, rank))

    # Who is where

    def _watch(self, ranks: list[Rank]) -> None:
        core = self._steps.core
        self._flying = {rank.rank_id for rank in ranks}
        for rank in ranks:
            self._steps.arrivals.wait(rank, self._arrive, rank.stop)
        moment = min(core.settings.step_grace, self._order.timeout / 2)
        self._timer = core.after(moment, self._moment_over)

    def _heard(self, rank: Rank, reply: Reply) -> None:
        if reply.no_reply_reason and rank.phase is Phase.LIVE:
            return  # silent: it will be missing
        self._unheard.discard(rank.rank_id)
        if not reply.ok:
            self._gone(rank, reply.no_reply_reason or in_one_line(reply.message))
        elif self._over and rank.rank_id in self._flying:
            self.gathering.answer(rank.rank_id, Answer(RUNNING))

    def _gone(self, rank: Rank, why: str) -> None:
        self._flying.discard(rank.rank_id)
        self.gathering.fail(rank.rank_id, why)
        self._consider()

    def _arrive(self, rank: Rank) -> None:
        if rank.rank_id not in self._flying:
            return
        self._flying.discard(rank.rank_id)
        if stands(rank):
            self._arrived.append(rank)
        else:
            self.gathering.answer(rank.rank_id, Answer(rank.state))
        self._consider()

    def _consider(self) -> None:
        if not self._flying:
            self._steps.core.cancel(self._timer)
        if self._over or not self._flying:
            self._tell()

    def _moment_over(self) -> None:
        self._over = True
        for id in self._flying - self._unheard:
            self.gathering.answer(id, Answer(RUNNING))
        self._tell()

    def _tell(self) -> None:
        """Tell where those stand who have arrived since, with what they display."""
        arrived, self._arrived = self._arrived, []
        ranks = [rank for rank in arrived if rank.rank_id in self.gathering.waiting]
        self._steps.tell(self._order, self.gathering, ranks)
