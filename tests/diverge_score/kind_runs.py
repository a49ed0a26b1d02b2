"""Kind "runs": where two runs part, by `diverge --locate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.diverge_score.traces import right, said_of
from tests.support.processes.commands import User

__all__ = ["look", "right"]


async def look(user: User, program: Path, nproc: int, **variables: str) -> dict[str, Any]:
    """Run a program, and return what is said of it."""
    return said_of(user.folder, program, nproc, variables)
