"""A verdict as the response of `why`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dap_mux.insight.stack_answer import frame_body
from dap_mux.insight.why.verdict import Verdict
from dap_mux.rank_sets import RankId

Body = dict[str, Any]


def answer(verdict: Verdict, named: Callable[[Iterable[RankId]], str]) -> Body:
    """Return the response; `named`: ranks as a rank set."""
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
        "evidence": list(verdict.evidence),
        "next": verdict.next,
    }
