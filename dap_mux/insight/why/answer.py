"""A verdict as the response of `why`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dap_mux.insight.stack_tree import Frame
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
                "stack": [_frame(each) for each in reversed(suspect.stack)],
                "waitingFor": suspect.waiting_for,
            }
            for suspect in verdict.suspects
        ],
        "evidence": list(verdict.evidence),
        "next": verdict.next,
    }


def _frame(frame: Frame) -> Body:
    return {
        "path": frame.path,
        "line": frame.line,
        "name": frame.function,
        "library": frame.library,
    }
