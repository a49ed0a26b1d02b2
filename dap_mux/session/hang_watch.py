"""Looks at a job that nobody watches, from outside and now and then, and says why it hangs.

The hours between a hang and the first person who looks at it are lost otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(eq=False)
class HangWatch:
    """Looks every `interval` seconds at the processes of `_running`, unless `_watched`."""

    interval: float
    _running: Callable[[], Mapping[RankId, int]]
    _watched: Callable[[], bool]
    _reported: str = ""

    async def run(self) -> None:
        """Report each verdict once, until cancelled."""
        while True:
            await anyio.sleep(self.interval)
            first = await self._look()
            if first is None:
                continue
            await anyio.sleep(min(CONFIRMED_AFTER_S, self.interval))
            again = await self._look()
            if again is not None and (again.name, again.suspects[:1]) == (
                first.name,
                first.suspects[:1],
            ):
                self._report(again)

    async def _look(self) -> Verdict | None:
        """Return what is wrong with the job, None for nothing."""
        if self._watched():
            return None
        try:
            ranks = await to_thread.run_sync(ranks_outside, [*self._running().values()])
            verdict, _ = await verdict_on(ranks)
        except DapMuxError as error:  # they have just ended
            logger.debug("no look from outside: %s", error)
            return None
        begun = all(one.has_begun for one in ranks)
        return verdict if begun and verdict.name not in (HEALTHY, UNDECIDED) else None

    def _report(self, verdict: Verdict) -> None:
        if verdict.sentence == self._reported:
            return
        self._reported = verdict.sentence
        alert(f"the job does not get on: {verdict.name}: {verdict.sentence}")
        for line in verdict.evidence:
            say_more(f"  {line}")
        say_more("  dap-mux why asks again")
        logger.info("%s: %s; %s", verdict.name, verdict.sentence, "; ".join(verdict.evidence))
