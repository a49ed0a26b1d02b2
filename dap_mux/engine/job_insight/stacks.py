"""`stacks`: the Python stacks of many ranks, running or stopped, merged into prefix trees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec import Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import leading_threads, named, shows_other_threads
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.fold import most_first
from dap_mux.pure.insight.stack_tree import Stack, kind_of_thread, stacks_answer
from dap_mux.pure.pathmap import RankPaths
from dap_mux.pure.protocol.rank_messages import MALFORMED
from dap_mux.pure.protocol.types import StacksArguments
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.debuggees import DebuggeeId
from dap_mux.pure.remote.probes import Stacks, ask_stacks, stacks_of

TASKS: Final = ", asyncio tasks"  # as in dap_mux/rank/injected/evidence/stacks.py


class StackTrees(Struct, eq=False):
    """The engine's part that answers `stacks`."""

    _core: SessionState
    _meshes: Meshes

    def stacks(self, request: ClientRequest) -> None:
        """`stacks`: no rank is stopped for it."""
        arguments = typed(request.arguments, StacksArguments)
        stacks, tasks = self._core.injected["stacks"], self._core.injected["task_trees"]
        every_thread = arguments.threads == "all"
        main, every = (ask_stacks(stacks, tasks, every_thread=each) for each in (False, True))

        def question(rank: Rank) -> str:
            return every if every_thread or shows_other_threads(rank) else main

        def chosen(ranks: list[Rank]) -> None:
            live = [rank for rank in ranks if rank.phase.live]
            absent = {rank.rank_id: rank.absence for rank in ranks if not rank.phase.live}
            then = partial(self._answer, request, absent, every_thread)
            gather_results(self._core, live, question, Stacks, then)

        self._meshes.choose(request, arguments.ranks, chosen)

    def _answer(
        self,
        request: ClientRequest,
        missing: dict[RankId, str],
        every_thread: bool,
        results: dict[DebuggeeId, Result[Stacks]],
    ) -> None:
        threads: dict[str, list[tuple[RankId, Stack]]] = {}
        known: dict[tuple[int, RankPaths], list[tuple[str, Stack]]] = {}
        for rank, told in self._told(results, missing):
            paths = paths_of(self._core, rank)
            try:
                if (id(told), paths) not in known:  # most ranks give the same answer
                    known[id(told), paths] = [*stacks_of(told, paths)]
            except PeerFault:
                missing[rank.rank_id] = MALFORMED
                continue
            stacks = known[id(told), paths]
            if not every_thread and shows_other_threads(rank):
                stacks = _leading(rank, told, stacks)
            for name, stack in stacks:
                threads.setdefault(kind_of_thread(name), []).append((rank.rank_id, stack))
        label = partial(named, self._core)
        body = stacks_answer(threads, most_first(missing), label, self._is_stopped)
        to_clients.respond(self._core, request, body)

    def _told(
        self, results: dict[DebuggeeId, Result[Stacks]], missing: dict[RankId, str]
    ) -> Iterator[tuple[Rank, Stacks]]:
        for id, (told, reply) in results.items():
            rank = self._core.ranks[id]
            if told is None:
                missing[rank.rank_id] = reply.problem
            else:
                yield rank, told

    def _is_stopped(self, rank: RankId) -> bool:
        return self._core.ranks[rank].stop is not None


def _leading(rank: Rank, told: Stacks, stacks: list[tuple[str, Stack]]) -> list[tuple[str, Stack]]:
    """Return those of the threads that show what the rank does, and of their asyncio tasks."""
    threads = [
        (name, is_main, any(not frame.library for frame in stack))
        for (name, stack), (_, is_main, _) in zip(stacks, told.threads, strict=True)
    ]
    names = {threads[place][0] for place in leading_threads(rank, threads)}
    return [one for one in stacks if one[0].partition(TASKS)[0] in names]
