"""`dap-mux why --from DIR`: the verdict on a job that has ended, by the files that it has left."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

OURS: Final = "dap-mux "
AGAIN: Final = "start the job by `dap-mux run`, and ask `dap-mux why` while it hangs"
MAX_SKIPPED: Final = 4


def why_from(folder: Path) -> dict[str, Any]:
    """Return the answer of `why`. Raises `DapMuxError` where there is nothing to judge."""
    from dap_mux.insight.why.after_death import by_number, evidence_of, more_evidence
    from dap_mux.insight.why.answer import answer
    from dap_mux.insight.why.verdicts import judge
    from dap_mux.rank_sets import fold
    from dap_mux.session.dump_files import find_remains

    found = find_remains(folder)
    verdict = judge(evidence_of(found.remains))
    body = answer(verdict, fold)
    culprits = by_number(verdict.suspects[0].ranks) if verdict.suspects else []
    failed = found.remains.first_failure
    if failed is not None and verdict.name == "process-gone" and failed in culprits:
        message = found.remains.failures[failed].message
        body["sentence"] = f"rank {failed} has ended with {message}"
    body["evidence"] += more_evidence(found.remains, culprits)
    body["evidence"] += [f"skipped {each}" for each in found.skipped[:MAX_SKIPPED]]
    if len(found.skipped) > MAX_SKIPPED:
        body["evidence"].append(f"skipped {len(found.skipped) - MAX_SKIPPED} more files")
    if OURS in body["next"]:  # there is no rank any more
        body["next"] = AGAIN
    return body
