"""A finding of the doctor: a cause, its evidence and a fix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`cause` is a stable name. `evidence`: observations, one sentence each, never guesses.

    `fix`: what to do, one line each; `paste`: text to copy, "" for none. `ranks`: a folded set, ""
    for none; `where`: an endpoint, file or session.
    """

    cause: str
    summary: str
    evidence: tuple[str, ...]
    fix: tuple[str, ...]
    paste: str = ""
    ranks: str = ""
    where: str = ""
