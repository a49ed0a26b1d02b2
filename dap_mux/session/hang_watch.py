"""Looks at a job that nobody watches, from outside and now and then, and says why it hangs.

The hours between a hang and the first person who looks at it are lost otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

import anyio
from anyio import to_thread

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.why.verdict import Verdict
from dap_mux.pure.insight.why.verdicts import HEALTHY, UNDECIDED
from dap_mux.pure.rank_sets import RankId
from dap_mux.session.outside_view import ranks_outside, verdict_on
from dap_mux.session.terminal_output import alert, say_more

logger = logging.getLogger("dap_mux.session")
CONFIRMED_AFTER_S: Final = 5.0
"""A job that is only slow has gone on by then."""


async def watch_for_hangs(
    interval: float, running: Callable[[], Mapping[RankId, int]], watched: Callable[[], bool]
) -> None:
    """Look every `interval` seconds at the processes of `running`, unless `watched`.

    Report each verdict once, until cancelled.
    """
    reported = ""
    while True:
        await anyio.sleep(interval)
        first = None if watched() else await _look(running())
        if first is None:
            continue
        await anyio.sleep(min(CONFIRMED_AFTER_S, interval))
        again = None if watched() else await _look(running())
        if again is None or (again.name, again.suspects[:1]) != (first.name, first.suspects[:1]):
            continue
        if again.sentence != reported:
            reported = again.sentence
            _report(again)


async def _look(running: Mapping[RankId, int]) -> Verdict | None:
    """Return what is wrong with the job, None for nothing."""
    try:
        ranks = await to_thread.run_sync(ranks_outside, [*running.values()])
        verdict, _ = await verdict_on(ranks)
    except DapMuxError as error:  # they have just ended
        logger.debug("no look from outside: %s", error)
        return None
    begun = all(one.has_begun for one in ranks)
    return verdict if begun and verdict.name not in (HEALTHY, UNDECIDED) else None


def _report(verdict: Verdict) -> None:
    alert(f"the job does not get on: {verdict.name}: {verdict.sentence}")
    for line in verdict.evidence:
        say_more(f"  {line}")
    say_more("  dap-mux why asks again")
    logger.info("%s: %s; %s", verdict.name, verdict.sentence, "; ".join(verdict.evidence))
