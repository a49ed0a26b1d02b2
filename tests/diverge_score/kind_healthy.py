"""Kind "healthy": nothing is said of it, though parameters are compared, by `diverge --locate`."""

from __future__ import annotations

from typing import Any

from tests.diverge_score.expected import Case
from tests.diverge_score.traces import look

__all__ = ["look", "right"]


def right(case: Case, body: dict[str, Any]) -> dict[str, bool]:
    """Whether nothing is said."""
    return {"silent": not body["differs"]}
