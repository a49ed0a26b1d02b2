"""Processes that nobody has prepared, seen from outside: `why pid:4711` and `stacks pid:4711`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dap_mux.pure.errors import DapMuxError, NothingToConnect, UsageError

if TYPE_CHECKING:
    from dap_mux.pure.insight.why.verdict import Verdict
    from dap_mux.session.machines_view import Sources
    from dap_mux.session.outside_view import OutsideRank

PID: Final = "pid:"
ON_LOOPBACK: Final = ("127.0.0.1:", "localhost:", "[::1]:")
NOBODY_DEBUGS: Final = "waiting"
"""The state of ranks that no debugger has been attached to."""
ENDED: Final = "exited"
OPEN_CONSOLE: Final = "dap-mux console"
NO_PY_SPY: Final = "py-spy is not installed (pip install py-spy)"
NO_STACKS: Final = (
    f"{NO_PY_SPY}, so the stacks of these processes cannot be read from outside; or attach to them "
    "by `dap-mux attach`, which injects debugpy into each"
)
Body = dict[str, Any]


@dataclass(frozen=True)
class SeenFromOutside:
    """The answer of `why`, and the processes of the culprits that still run."""

    body: Body
    culprits: tuple[int, ...] = ()
    lacks_py_spy: bool = False
    has_begun: bool = True


def endpoints_in(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments if they are endpoints, () if none is. Raises UsageError for some."""
    endpoints = tuple(word for word in arguments if _is_endpoint(word))
    strange = [word for word in arguments if word not in endpoints]
    if endpoints and strange:
        raise UsageError(f"{strange[0]}: name either a session or endpoints, not both")
    return endpoints


def _is_endpoint(word: str) -> bool:
    """Whether a word names ranks that a source finds, or ports of several ranks."""
    from dap_mux.cluster.endpoints import has_source

    if re.fullmatch(r"(?:dask|ray):[0-9][0-9,-]*", word):  # ranks of the group of that name
        return False
    several = re.fullmatch(r"(?:@.*\.json|.*:\d+[-+]\d+)", word)
    return several is not None or has_source(word)


def pids_in(endpoints: Sequence[str]) -> list[int] | None:
    """Return the processes of this machine that the endpoints are, None if any is another."""
    if not all(each.startswith(PID) for each in endpoints):
        return None
    from dap_mux.session.outside_view import pids_of

    return pids_of(endpoints)


def endpoint_of(pids: Sequence[int]) -> str:
    """Return the endpoint that names processes of this machine."""
    return f"{PID}{','.join(map(str, pids))}"


async def why_outside(pids: Sequence[int]) -> SeenFromOutside:
    """Ask of processes, or of those that a launcher has started, and leave them as they are."""
    from dap_mux.session.outside_view import verdict_on

    ranks = await _ranks(pids)
    verdict, by_ras = await verdict_on(ranks)
    seen = _seen(verdict, ranks, by_ras, f"dap-mux why {endpoint_of(pids)} --attach")
    if seen.lacks_py_spy:
        seen.body["next"] = f"pip install py-spy; or dap-mux why {endpoint_of(pids)} --attach"
    return seen


def _seen(
    verdict: Verdict, ranks: Sequence[OutsideRank], lines: Sequence[str], attach: str
) -> SeenFromOutside:
    """Return the answer. `lines`: more evidence; `attach`: the command that brings a debugger."""
    from dap_mux.pure.insight.why.variables import differences, variables_of
    from dap_mux.pure.insight.why.verdict import answer
    from dap_mux.pure.insight.why.verdicts import UNDECIDED
    from dap_mux.pure.rank_sets import fold
    from dap_mux.session.outside_view import source_of

    is_known = verdict.name != UNDECIDED
    body = answer(verdict, fold)
    culprits = _culprits(verdict, ranks) if is_known else []
    for one in culprits:
        where = f" on {one.machine}" if one.machine else ""
        shown = variables_of(one.own)
        variables = f"; its variables in {shown}" if shown else ""
        body["evidence"].append(
            f"rank {one.rank[1]} is process {one.process.pid}{where}{variables}"
        )
    if verdict.suspects:
        here = source_of if not ranks[0].machine else lambda _: None
        body["evidence"] += differences({one.rank: one.own for one in ranks}, here)
    body["evidence"] += lines
    if body["next"].startswith(OPEN_CONSOLE):  # there is no session
        body["next"] = attach
    lacks = not is_known and all(one.lacks_py_spy for one in ranks)
    begun = all(one.has_begun for one in ranks)
    return SeenFromOutside(body, tuple(one.process.pid for one in culprits), lacks, begun)


def machines_in(endpoints: Sequence[str]) -> Sources | None:
    """Return the hosts, SLURM jobs or pods that the endpoints are, None if any is another.

    None also where one says on which ports its ranks listen. Raises UsageError.
    """
    from dap_mux.session.machines_view import open_sources

    return open_sources(endpoints)


async def why_on_machines(sources: Sources, job: str) -> Body | None:
    """Ask of all ranks there, which nobody has prepared; `job`: the name of one of several.

    None where they are better asked through their debugpy, because each listens. Raises
    `DapMuxError`.
    """
    from dap_mux.pure.insight.why.verdicts import judge
    from dap_mux.session.machines_view import look_at_machines
    from dap_mux.session.outside_view import evidence_of

    seen = await look_at_machines(sources, job)
    if seen.listens:
        return None
    verdict = judge(evidence_of(seen.ranks, seen.interval))
    body = _seen(verdict, seen.ranks, seen.lines, "").body
    if culprits := _culprits(verdict, seen.ranks):
        command = body["next"] or f"dap-mux attach {endpoint_of([culprits[0].process.pid])}"
        body["next"] = f"on {culprits[0].machine}: {command}"
    return body


def _culprits(verdict: Verdict, ranks: Sequence[OutsideRank]) -> list[OutsideRank]:
    """Return those that still run; of another machine, as far as it has been seen."""
    named = verdict.suspects[0].ranks if verdict.suspects else ()
    return [one for one in ranks if one.rank in named and _runs(one)]


def _runs(one: OutsideRank) -> bool:
    if one.machine:
        return any(process.state for process in one.processes[-1:])
    return one.process.runs


async def place_outside(pid: int) -> list[str]:
    """Return a line that says where a process is, [] where that cannot be seen."""
    from dap_mux.pure.errors import DapMuxError
    from dap_mux.pure.insight.why.evidence import stack_of
    from dap_mux.pure.insight.why.verdict import place
    from dap_mux.session.outside_view import look

    try:
        (one,) = await _ranks([pid])
    except (DapMuxError, ValueError):
        return []
    await look([one], 1)
    threads = [(sample, each) for sample in one.samples for each in sample.threads if each.main]
    frames = [frame for sample, each in threads for frame in stack_of(sample, each)]
    own = [frame for frame in frames if not frame.library] or frames
    return [f"seen from outside, process {pid} is at {place(own[-1])}"] if own else []


def undebugged(rows: Sequence[Body]) -> bool:
    """Whether there are ranks, and no debugger is attached to any that is left."""
    states = {row["state"] for row in rows}
    return NOBODY_DEBUGS in states and not states - {NOBODY_DEBUGS, ENDED}


def pids_here(rows: Sequence[Body]) -> list[int] | None:
    """Return the processes of ranks, None if some are not known to be of this machine."""
    rows = [row for row in rows if row["state"] != ENDED]
    pids = [row["pid"] for row in rows if (row["endpoint"] or "").startswith(ON_LOOPBACK)]
    return None if not pids or len(pids) < len(rows) or None in pids else pids


async def have_begun(rows: Sequence[Body]) -> bool | None:
    """Return whether ranks without a debugger run their program, None where that is not seen."""
    from dap_mux.session.outside_view import look

    pids = pids_here(rows)
    if pids is None:
        return None
    ranks = await _ranks(pids)
    await look(ranks, 1)
    return all(one.has_begun for one in ranks) if all(one.samples for one in ranks) else None


async def stacks_outside(pids: Sequence[int], *, every_thread: bool) -> Body:
    """Return the response of `stacks` for processes, or those that a launcher has started.

    Raises `DapMuxError` where py-spy is not installed.
    """
    from dap_mux.session.outside_view import look

    ranks = await _ranks(pids)
    await look(ranks)
    if all(one.lacks_py_spy for one in ranks):
        raise DapMuxError(NO_STACKS)
    return _stacks(ranks, "py-spy", every_thread=every_thread)


async def stacks_on_machines(sources: Sources, job: str, *, every_thread: bool) -> Body:
    """Return the same of all ranks of hosts, jobs or pods; say which machine does not answer."""
    from dap_mux.session.machines_view import look_at_machines
    from dap_mux.session.terminal_output import say

    seen = await look_at_machines(sources, job)
    if not seen.ranks:
        raise NothingToConnect("; ".join(seen.lines))
    for line in seen.lines:
        say(line)
    return _stacks(seen.ranks, "hosts", every_thread=every_thread)


def _stacks(ranks: Sequence[OutsideRank], source: str, *, every_thread: bool) -> Body:
    from dap_mux.pure.insight.stack_tree import stacks_answer
    from dap_mux.pure.rank_sets import fold
    from dap_mux.session.outside_view import stacks_seen

    threads, missing = stacks_seen(ranks, every_thread=every_thread)
    return {**stacks_answer(threads, missing.items(), fold, lambda rank: False), "source": source}


async def _ranks(pids: Sequence[int]) -> list[OutsideRank]:
    import anyio

    from dap_mux.session.outside_view import ranks_outside

    return await anyio.to_thread.run_sync(ranks_outside, pids)
