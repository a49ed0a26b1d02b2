"""Samples of many ranks, from inside and outside, for `why` and `stacks`; no rank is stopped."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dap_mux.engine.inputs import ProcessesRead, Recorded
from dap_mux.engine.job_insight.partial_moves import OnFound
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Join, Result, gather_results
from dap_mux.engine.outputs import ReadProcesses
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.path_mappings import paths_of
from dap_mux.engine.state.rank import Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import base_name, leading_threads, named, shows_other_threads
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.endpoint import is_loopback
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.compare import most_first
from dap_mux.pure.insight.stack_tree import Stack, kind_of_thread, stacks_answer
from dap_mux.pure.insight.why.evidence import (
    Evidence,
    Process,
    RankEvidence,
    Sample,
    Standing,
    continued,
)
from dap_mux.pure.insight.why.graph import Standing as StopPlace
from dap_mux.pure.insight.why.graph import held_up
from dap_mux.pure.insight.why.verdict import Verdict
from dap_mux.pure.insight.why.verdict import answer as body_of
from dap_mux.pure.insight.why.verdicts import AGAIN_AFTER_S, is_doubtful, judge
from dap_mux.pure.pathmap import RankPaths
from dap_mux.pure.printable import one_line
from dap_mux.pure.protocol.rank_messages import MALFORMED
from dap_mux.pure.protocol.types import StacksArguments, WhyArguments
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import Stacks, ask_stacks, stacks_of

# Asks ranks what they do: `injected.evidence`.
#
# It is sent to a rank once, as bytecode where its Python has the format of this one's.

SAMPLE: Final = "'{\"sample\":%s}' % own['evidence'](own['sent'])"


class InForm(msgspec.Struct, frozen=True):
    """A rank's answer; `lacks`: the form in which the modules must be sent to it first."""

    lacks: Literal["bytecode", "source"] | None = None


class EvidenceAnswer(InForm, frozen=True):
    """A sample, unless modules are lacking."""

    sample: Sample | None = None

    def __post_init__(self) -> None:
        if (self.sample is None) is (self.lacks is None):
            raise ValueError("either of them is needed")


A = TypeVar("A", bound=InForm)


def ask_evidence(
    core: SessionState,
    ranks: Iterable[Rank],
    value: str,
    kind: type[A],
    then: Callable[[dict[DebuggeeId, Result[A]]], None],
    timeout: float | None = None,
) -> None:
    """Ask each rank for a value by the modules of `injected/evidence`, which it may not have yet.

    `then` is called once every rank has answered or is given up; `timeout`: seconds for each of the
    two questions that it takes at most.
    """
    asked = list(ranks)
    found: dict[DebuggeeId, Result[A]] = {}
    bundle = core.injected.bundles["evidence"]

    def brought(results: dict[DebuggeeId, Result[A]]) -> None:
        found.update(results)
        then(found)

    def answered(results: dict[DebuggeeId, Result[A]]) -> None:
        messages: dict[DebuggeeId, str] = {}
        for id, (answer, reply) in results.items():
            if answer is not None and answer.lacks is not None:
                messages[id] = bundle.bring(value, compiled=answer.lacks == "bytecode")
            else:
                found[id] = answer, reply
        lack = (rank for rank in asked if rank.id in messages)
        gather_results(core, lack, lambda rank: messages[rank.id], kind, brought, timeout)

    question = bundle.ask(value)
    gather_results(core, asked, lambda _: question, kind, answered, timeout)


SILENT_AFTER_S: Final = 1.0
"""A rank that has told nothing by then is not asked again: no thread of Python's runs in it."""
MAX_EXCEPTION: Final = 300  # characters of its text
SAMPLES: Final = 2  # where it is looked who waits for ranks that stand
INTERVAL_S: Final = 0.3


@dataclass
class _Inquiry:
    """One look at some ranks under way."""

    ranks: list[Rank]
    left: int
    interval: float
    then: Final[Callable[[Evidence], None]]
    samples: dict[DebuggeeId, list[Sample]] = field(default_factory=dict)
    processes: dict[str, list[Process]] = field(default_factory=dict)
    problems: dict[DebuggeeId, str] = field(default_factory=dict)


class EvidenceGatherer(Struct, eq=False):
    """The engine's part that looks at what ranks do."""

    _core: SessionState

    def gather(
        self,
        ranks: Iterable[Rank],
        samples: int,
        interval: float,
        then: Callable[[Evidence], None],
    ) -> None:
        """Take so many samples of each rank, `interval` seconds apart, and call `then`."""
        self._look(_Inquiry(list(ranks), samples, interval, then))

    def look_for_held_up(self, run: list[Rank], stand: list[Rank], then: OnFound) -> None:
        """Look whether ranks that were let run wait for others that stand; stop none of them.

        Samples are of every rank, because any of them may keep the others waiting.
        """
        live = [rank for rank in self._core.sorted_mains() if rank.phase.live]
        asked = {rank.rank_id for rank in run}
        places = {rank.rank_id: _place(rank) for rank in stand}

        def told(evidence: Evidence) -> None:
            then([*held_up(evidence, asked, places, self._core.default_group())])

        self.gather(live, SAMPLES, INTERVAL_S, told)

    def _look(self, inquiry: _Inquiry) -> None:
        """Take one sample of each rank, from inside and from outside."""
        inquiry.left -= 1
        join = Join(self._core, ("inside", "outside"), lambda _: self._looked(inquiry))

        def told(results: dict[DebuggeeId, Result[EvidenceAnswer]]) -> None:
            for id, (answer, reply) in results.items():
                if answer is None or answer.sample is None:
                    inquiry.problems[id] = reply.problem
                else:
                    inquiry.samples.setdefault(id, []).append(answer.sample)
            join.arrive("inside")

        def read(event: ProcessesRead) -> None:
            for identity, process in event.processes.items():
                inquiry.processes.setdefault(identity, []).append(process)
            join.arrive("outside")

        processes = tuple(filter(None, map(_process_of, inquiry.ranks)))
        self._core.ask_shell(lambda token: ReadProcesses(token, processes), read)
        asked = (
            rank for rank in inquiry.ranks if rank.phase.live and rank.id not in inquiry.problems
        )
        ask_evidence(self._core, asked, SAMPLE, EvidenceAnswer, told, SILENT_AFTER_S)

    def _looked(self, inquiry: _Inquiry) -> None:
        if inquiry.left:
            self._core.after(inquiry.interval, lambda: self._look(inquiry))
            return
        inquiry.then(_evidence(self._core, inquiry))


def _evidence(core: SessionState, inquiry: _Inquiry) -> Evidence:
    found = {
        rank.rank_id: RankEvidence(
            rank.rank_id,
            _standing(core, rank, inquiry.problems.get(rank.id, "")),
            [_leading(rank, sample) for sample in inquiry.samples.get(rank.id, ())],
            inquiry.processes.get(_process_of(rank), ()),
        )
        for rank in inquiry.ranks
    }
    return Evidence(found, inquiry.interval)


def _leading(rank: Rank, sample: Sample) -> Sample:
    """Take the thread that shows what the rank does for its main one."""
    if not shows_other_threads(rank):
        return sample
    files = sample.files
    told = [
        (
            one.name,
            one.main,
            any(file < len(files) and not files[file][1] for file, *_ in one.frames),
        )
        for one in sample.threads
    ]
    first = leading_threads(rank, told)[:1]
    threads = [replace(one, main=place in first) for place, one in enumerate(sample.threads)]
    return replace(sample, threads=threads)


def _process_of(rank: Rank) -> str:
    """Return the identity that a rank has told; else what else this machine may know it by."""
    if rank.process:
        return rank.process
    if rank.endpoint.watched and rank.endpoint.pid:
        return str(rank.endpoint.pid)
    return f":{rank.endpoint.port}" if is_loopback(rank.endpoint.host) else ""


def _standing(core: SessionState, rank: Rank, problem: str) -> Standing:
    stop = _stop_text(rank.stop) if rank.stop else rank.wait
    known = Standing(rank.state, stop, rank.exit_code, problem or rank.reason)
    at = rank.at_barrier
    if at is None or at.round is None or at.round.complete:
        return known
    where = f" at {base_name(at.frame.path)}:{at.frame.line}" if at.frame else ""
    awaited = tuple(sorted(core.ranks[id].rank_id for id in at.round.awaited if id in core.ranks))
    return dataclasses.replace(
        known, breakpoint=f"{at.round.word} breakpoint{where}", awaited=awaited
    )


def _stop_text(stop: Stop) -> str:
    """Return `breakpoint`, or `exception ValueError: shard-3 is truncated`."""
    about = (stop.details.get(name) for name in ("text", "description"))
    told = ": ".join(one for one in about if isinstance(one, str) and one)
    if stop.reason != "exception" or not told:
        return stop.reason or "stopped"
    return one_line(f"{stop.reason} {told[:MAX_EXCEPTION]}")


def _place(rank: Rank) -> StopPlace:
    stop = rank.stop
    if stop is None or not stop.frames:
        return StopPlace("", ends=bool(stop and stop.unhandled))
    frame = stop.frames[stop.own]
    return StopPlace(f"{base_name(frame.path)}:{frame.line}", ends=stop.unhandled)


NOT_ASKED: Final = (
    "`why` was not asked at this stop of the recording, and to ask it now needs live ranks. {}"
)


# `why`: some samples of every rank, one after the other, and the verdict on them.


class Why(Struct, eq=False):
    """The engine's part that answers `why`."""

    _core: SessionState
    _meshes: Meshes
    _evidence: EvidenceGatherer
    _look_for_slow: Callable[[ClientRequest, list[Rank]], None]

    def why(self, request: ClientRequest) -> None:
        """`why`: no rank is stopped for it."""
        arguments = typed(request.arguments, WhyArguments)
        if self._core.recorded is not None:
            self._repeat(request, self._core.recorded)
            return
        if arguments.slow:
            self._meshes.choose(request, arguments.ranks, partial(self._look_for_slow, request))
            return

        def chosen(ranks: list[Rank]) -> None:
            self._evidence.gather(ranks, arguments.samples, arguments.interval, told)

        def told(evidence: Evidence) -> None:
            verdict = judge(evidence)
            if not is_doubtful(verdict, evidence):
                answer(verdict, evidence)
                return
            ranks = [one for one in self._core.sorted_mains() if one.rank_id in evidence.ranks]

            def told_more(later: Evidence) -> None:
                both = continued(evidence, later, AGAIN_AFTER_S)
                answer(judge(both), both)

            self._core.after(
                AGAIN_AFTER_S, lambda: self._evidence.gather(ranks, 1, AGAIN_AFTER_S, told_more)
            )

        def answer(verdict: Verdict, evidence: Evidence) -> None:
            to_clients.respond(
                self._core, request, body_of(verdict, partial(named, self._core), evidence)
            )

        self._meshes.choose(request, arguments.ranks, chosen)

    def _repeat(self, request: ClientRequest, recorded: Recorded) -> None:
        if recorded.why:
            to_clients.respond(self._core, request, dict(recorded.why))
        else:
            to_clients.refuse(self._core, request, NOT_ASKED.format(recorded.end))


# `stacks`: the Python stacks of many ranks, running or stopped, merged into prefix trees.

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
                stacks = _leading_thread(rank, told, stacks)
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


def _leading_thread(
    rank: Rank, told: Stacks, stacks: list[tuple[str, Stack]]
) -> list[tuple[str, Stack]]:
    """Return those of the threads that show what the rank does, and of their asyncio tasks."""
    threads = [
        (name, is_main, any(not frame.library for frame in stack))
        for (name, stack), (_, is_main, _) in zip(stacks, told.threads, strict=True)
    ]
    names = {threads[place][0] for place in leading_threads(rank, threads)}
    return [one for one in stacks if one[0].partition(TASKS)[0] in names]
