"""`cast`: one command to exactly the ranks named; their answers folded, the missing named.

The words are pdb's (`pdb_words`), mapped to DAP: `pdb_values` for those that look, `pdb_steps`
for those that move, `pdb_breakpoints` for breakpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from dap_mux.engine.breakpoints.edits import Drawer
from dap_mux.engine.commands.pdb.breakpoint_commands import BreakpointWords
from dap_mux.engine.commands.pdb.command import Order, Word
from dap_mux.engine.commands.pdb.expressions import PdbExpressions
from dap_mux.engine.commands.pdb.grammar import Said, read
from dap_mux.engine.commands.pdb.locations import Places
from dap_mux.engine.commands.pdb.step_commands import StepWords
from dap_mux.engine.commands.pdb.value_commands import Displays, ValueWords
from dap_mux.engine.evaluate.fan_out import Answers, Asking, handle_of
from dap_mux.engine.evaluate.fold import folded
from dap_mux.engine.evaluate.meshes import Meshes
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.model import Body, ClientRequest, Rank
from dap_mux.engine.state.session import Core
from dap_mux.engine.stops.aggregate import STACK_TIMEOUT
from dap_mux.engine.stops.control import Control
from dap_mux.engine.stops.stop_waiters import Arrivals
from dap_mux.errors import UsageError
from dap_mux.protocol.types import CastArguments, typed
from dap_mux.rank_sets import RankId, fold

LONGEST: Final = 86_400.0  # s


class Cast:
    """The engine's part that answers `cast`."""

    def __init__(
        self,
        core: Core,
        meshes: Meshes,
        asking: Asking,
        arrivals: Arrivals,
        control: Control,
        drawer: Drawer,
    ) -> None:
        self._core = core
        self._meshes = meshes
        self._arrivals = arrivals
        expressions = PdbExpressions(core.injected.pdb_views)
        places, displays = Places(asking, expressions), Displays(asking)
        self._words: Mapping[str, Word] = {
            **ValueWords(asking, expressions, places, displays).words,
            **StepWords(core, asking, arrivals, control, drawer, places, displays).words,
            **BreakpointWords(drawer).words,
        }

    def cast(self, request: ClientRequest) -> None:
        """`cast`."""
        arguments = typed(request.arguments, CastArguments)
        if not 0 < arguments.timeout <= LONGEST:
            raise UsageError(f"timeout is more than 0 and at most {LONGEST:.0f} seconds")
        said = read(arguments.command)
        then = partial(self._begin, request, said, arguments.timeout)
        self._meshes.choose(request, arguments.ranks, then)

    def _begin(self, request: ClientRequest, said: Said, timeout: float, ranks: list[Rank]) -> None:
        then = partial(self._answer, request)
        order = Order(self._core, request.client, ranks, said.word, said.argument, timeout, then)
        self._when_settled(order, partial(self._carry_out, request, order))

    def _when_settled(self, order: Order, then: Callable[[], None]) -> None:
        """Wait for stops whose places are on their way: a moment, once."""
        open = {rank.rank_id for rank in order.ranks if rank.stop and not rank.stop.settled}
        if not open:
            then()
            return

        def over() -> None:
            open.clear()
            self._core.cancel(timer)
            then()

        def settled(rank: Rank) -> None:
            if rank.rank_id in open:
                open.discard(rank.rank_id)
                if not open:
                    over()

        timer = self._core.after(STACK_TIMEOUT, over)
        for id in list(open):
            self._arrivals.wait(self._core.ranks[id], settled)

    def _carry_out(self, request: ClientRequest, order: Order) -> None:
        try:
            self._words[order.word](order)
        except UsageError as error:
            to_clients.refuse(self._core, request, str(error))

    def _answer(self, request: ClientRequest, answers: Answers) -> None:
        to_clients.respond(self._core, request, body_of(self._core, answers))


def body_of(core: Core, answers: Answers) -> Body:
    """Return the body of `cast`: equal answers folded, most ranks first."""
    label = partial(named, core)
    values = {id: (answer.value, answer.type) for id, answer in answers.values.items()}
    body = folded(
        values, answers.errors, label, lambda rank: handle_of(core, rank, answers.values[rank])
    )
    answered = answers.in_main & answers.values.keys()
    return {**body, "missing": label(answers.missing), "inMain": label(answered)}


def named(core: Core, ranks: Iterable[RankId]) -> str:
    """Return ranks as a rank set, with their group wherever that is not the only one."""
    ids = list(ranks)
    text = fold(ids, core.default_group())
    alone = core.several_groups and len({id[0] for id in ids}) == 1
    return f"{ids[0][0]}:{text}" if alone else text
