"""A run that was recorded beside one that runs: the first step after which their values differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeAlias

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.numerics.diverge_runs import Parting, first_parting
from dap_mux.pure.insight.numerics.diverge_trace import Call, Line, RankTrace, Step
from dap_mux.pure.protocol.rank_messages import StepTold

BySteps: TypeAlias = dict[int, list[Line]]
"""The calls of each step, and its end."""


class RecordedRun:
    """What each rank had after each step, by a trace. `name`: the trace's, as users know it."""

    def __init__(self, name: str, traces: Sequence[RankTrace]) -> None:
        """Raises DapMuxError for a trace with hashes that a running rank does not make."""
        self.name = name
        if any(trace.has_operations for trace in traces):
            raise DapMuxError(
                f"{name}: it has each operation, and other hashes than a rank that is not slowed "
                "down: record it by `run --comm hash --comm-file`"
            )
        self._steps = {trace.rank: _by_steps(trace.lines) for trace in traces}
        self._digests = {
            (rank, number): _digest(lines)
            for rank, steps in self._steps.items()
            for number, lines in steps.items()
        }
        if not self._digests:
            raise DapMuxError(f"{name}: it has no step of an optimizer, so nothing to compare")

    def differs(self, rank: int, said: StepTold) -> bool:
        """Whether a rank has other parameters than it had; of ranks that count from the start."""
        known = self._digests.get((rank, said.step)) if said.order == (0, said.step) else None
        return known is not None and known != (said.whole or said.digests.get("", known))

    def parting(self, looked: Mapping[int, Sequence[Line]]) -> Parting | None:
        """Return the first difference, by the steps that ranks still know."""
        numbers: dict[int, list[int]] = {}
        traces: tuple[list[RankTrace], list[RankTrace]] = ([], [])
        for rank, lines in looked.items():
            runs = self._steps.get(rank, {}), _by_steps(lines)
            numbers[rank] = sorted(runs[0].keys() & runs[1].keys())
            if numbers[rank]:
                for run, found in zip(runs, traces, strict=True):
                    chosen = [line for number in numbers[rank] for line in run[number]]
                    found.append(RankTrace(rank, chosen))
        parting = first_parting(*traces)
        if parting is not None and parting.step is not None:
            of_rank = numbers[parting.ranks[0]]
            parting.step = of_rank[min(parting.step, len(of_rank) - 1)]
        return parting


def _by_steps(lines: Iterable[Line]) -> BySteps:
    found: BySteps = {}
    since: list[Line] = []
    for line in lines:
        if isinstance(line, Call | Step):
            since.append(line)
        if isinstance(line, Step):
            found[line.number], since = since, []
    return found


def _digest(lines: list[Line]) -> str:
    """Return the digest that `rank.comm.live` makes of a step's end."""
    step = lines[-1]
    assert isinstance(step, Step)
    texts = [
        f"{name} {step.before.get(name)} {after}" for name, after in sorted(step.after.items())
    ]
    return blake2b("\n".join(texts).encode(), digest_size=8).hexdigest()
