"""A verdict as the response of `why`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from dap_mux.insight.stack_answer import frame_body
from dap_mux.insight.why.evidence import Evidence
from dap_mux.insight.why.verdict import Verdict
from dap_mux.rank_sets import RankId

Body = dict[str, Any]
FINE: Final = frozenset({"healthy"})
OFF: Final = "off"
RECORDER_OFF: Final = (
    "torch's flight recorder is off (rank set {}), so it is not known in which collectives they "
    "are: TORCH_FR_BUFFER_SIZE=2000 switches it on"
)


def answer(
    verdict: Verdict, named: Callable[[Iterable[RankId]], str], evidence: Evidence | None = None
) -> Body:
    """Return the response; `named`: ranks as a rank set. `evidence`: what it was judged by."""
    off = _without_recorder(evidence) if evidence and verdict.name not in FINE else []
    return {
        "verdict": verdict.name,
        "sentence": verdict.sentence,
        "suspects": [
            {
                "ranks": named(suspect.ranks),
                "stack": [frame_body(each) for each in reversed(suspect.stack)],
                "waitingFor": suspect.waiting_for,
            }
            for suspect in verdict.suspects
        ],
        "evidence": [*verdict.evidence, *([RECORDER_OFF.format(named(off))] if off else [])],
        "next": verdict.next,
    }


def _without_recorder(evidence: Evidence) -> list[RankId]:
    """Return the ranks of torch whose flight recorder has no room for entries."""
    return [one.rank for one in evidence if one.last is not None and one.last.recorder == OFF]
