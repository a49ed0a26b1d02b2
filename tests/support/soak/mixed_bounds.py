"""What the session of the scene `mixed` may hold, and how far that may grow."""

from __future__ import annotations

from typing import Final

from tests.support.soak.gauges import Bound

POOL: Final = 8  # threads, started when there is work for them
BASELINE: Final = ("files", "tasks", "handles", "deadlines", "timers", "links", "clients", "errors")
BASELINE_BOUNDS: Final = dict.fromkeys(BASELINE, Bound())
# At rest: nothing is left of anybody, and what is kept for errors and for speed does not grow.
AT_REST: Final = {
    **BASELINE_BOUNDS,
    "threads": Bound(units=POOL),
    "objects": Bound(units=2_000, share=0.02),
    "rss": Bound(units=6 * 1024, share=0.05),
}
# Meanwhile: how many clients are there, and how many ranks are stopped, is chance.
MEANWHILE: Final = {
    "files": Bound(units=20),
    "threads": Bound(units=POOL),
    "tasks": Bound(units=40),
    "deadlines": Bound(units=200),
    "timers": Bound(units=200),
    "handles": Bound(units=1_000, share=1.0),
    "objects": Bound(units=40_000, share=0.3),
    "rss": Bound(units=12 * 1024, share=0.15),
}
