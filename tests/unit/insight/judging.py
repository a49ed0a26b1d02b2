"""Ranks that a test has made up are judged, as those of one job."""

from __future__ import annotations

from dataclasses import replace

from dap_mux.pure.insight.why.evidence import Evidence, RankEvidence
from dap_mux.pure.insight.why.verdict import Verdict
from dap_mux.pure.insight.why.verdicts import judge
from dap_mux.pure.rank_sets import fold


def evidence(*ranks: RankEvidence) -> Evidence:
    """Of ranks 0, 1, …, whatever number each of them has been made with."""
    ids = [("job", number) for number in range(len(ranks))]
    return Evidence({id: replace(one, rank=id) for id, one in zip(ids, ranks, strict=True)})


def verdict(*ranks: RankEvidence) -> Verdict:
    """What is said of them."""
    return judge(evidence(*ranks))


def named(found: Verdict) -> tuple[str, str]:
    """The verdict, and whom it names first."""
    return found.name, fold(found.suspects[0].ranks) if found.suspects else ""
