"""The sum in docs/why.md: how often `why` was right, and at which commit. The table is printed."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

from tests.why_score.ranks import ROOT
from tests.why_score.score import Score

PAGE: Final = ROOT / "docs" / "why.md"
BEGIN: Final = "<!-- The score: written by `make why-score`. -->"
END: Final = "<!-- The end of the score. -->"
HEAD: Final = ("fault of one rank", "what it does", "cause", "sockets", "gloo", "mpi4py")


def table(score: Score) -> str:
    """Return a row for each fault."""
    rows = [HEAD, ("---",) * len(HEAD), *score.rows()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def summary(score: Score, commit: str) -> str:
    """Return the part between the marks."""
    told = f"{score.sentence()} {score.gaps()} Measured at {commit}.".replace("  ", " ")
    return f"{BEGIN}\n{told}\n{END}"


def changed(page: str, part: str, begin: str = BEGIN, end: str = END) -> str:
    """Return the page with this part in place of the old one, or at its end."""
    old = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    if old.search(page):
        return old.sub(lambda _: part, page)
    return f"{page.rstrip()}\n\n{part}\n".lstrip()


def write(score: Score) -> None:
    """Write it."""
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    page = PAGE.read_text("utf-8") if PAGE.exists() else "# Why\n"
    PAGE.write_text(changed(page, summary(score, commit.strip())), "utf-8")
    print(table(score))
    print(f"wrote {PAGE}", file=sys.stderr)
