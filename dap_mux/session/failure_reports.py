"""Failures that ranks of this machine report in files: while held at one, and at their end."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dap_mux.engine import inputs
from dap_mux.rank_sets import RankId
from dap_mux.session.session import Session

POLL_INTERVAL_S: Final = 0.25
REMINDER_INTERVAL_S: Final = 5.0  # to update the time for which a rank is still held


class FailureReports:
    """Tells the engine what ranks have written, whenever that has changed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._told: dict[RankId, tuple[object, float]] = {}

    def look(self, rank: RankId, file: Path) -> None:
        """Read a rank's file, if there is one."""
        record = _read(file)
        if record is None:
            self._told.pop(rank, None)
            return
        now, until = time.time(), record["until"]
        before, at = self._told.get(rank, (None, 0.0))
        if record == before and (until is None or now - at < REMINDER_INTERVAL_S):
            return
        self._told[rank] = record, now
        left = None if until is None else max(0.0, until - now)
        self._session.driver.feed(inputs.RankFailed(rank, record["failure"], left))


def _read(file: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        record = json.loads(file.read_text("utf-8"))
        until = record.get("until")
        if isinstance(record.get("failure"), str) and isinstance(until, float | None):
            return {"failure": record["failure"], "until": until}
    return None
