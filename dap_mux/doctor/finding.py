"""What the doctor has found: one cause, its evidence and what helps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`cause` is a stable name. `evidence`: what was seen, a sentence each, never a guess.

    `fix`: what to do, a line each; `paste`: text to put somewhere as it stands, "" for none.
    `ranks`: a folded rank set, "" where it is about none; `where`: an endpoint, file or session.
    """

    cause: str
    summary: str
    evidence: tuple[str, ...]
    fix: tuple[str, ...]
    paste: str = ""
    ranks: str = ""
    where: str = ""
