"""Scores the agent's answers against the expected ones; writes the sums in docs/agents.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.agent_score.expected import BUGS, RANKS, Bug
from tests.why_score.page import changed
from tests.why_score.ranks import ROOT
from tests.why_score.results import lines_in, ranks_of

PAGE: Final = ROOT / "docs" / "agents.md"
RESULTS: Final = ROOT / "build" / "agent-score.jsonl"
BEGIN: Final = "<!-- The score: written by `make agent-score`. -->"
END: Final = "<!-- The end of the score. -->"
TOOLS, BASELINE = WAYS = ("tools", "baseline")
FEW, MANY = "few", "many"
"""The agent in a session that has attached to ranks: to those of a job, and to 512 like them."""
OF_MANY: Final = (
    "empty_prefetch",
    "pool_worker_exits",
    "early_stopping",
    "swallowed_parse_error",
    "uneven_files",
    "resume_where_exists",
    "lock_over_barrier",
)
SYMPTOMS: Final = ("hang", "wrong", "crash", "slow")
SYMPTOM_HEAD: Final = ("symptom", "by the tools", "by py-spy and logs")
HEAD: Final = ("bug", "symptom", "by the tools", "calls", "KB", "by py-spy and logs", "KB")
ALL: Final = "rank, line, cause"
NONE: Final = "-"
LATE: Final = ("", " (late)", " (late, second round)")
Json = dict[str, Any]
NOTHING: Final[Json] = {
    "named": {"ranks": "", "file": "", "line": 0, "cause": ""},
    "calls": 0,
    "bytes": 0,
}
"""Of a bug that was not looked for."""
Key = tuple[str, str]
Row = tuple[str, ...]


class Right(NamedTuple):
    """Which parts of an answer are right."""

    rank: bool
    line: bool
    cause: bool

    def __str__(self) -> str:
        """Name them, as a cell of the table."""
        return ", ".join(name for name, is_right in self._asdict().items() if is_right) or NONE


def right(bug: Bug, found: Mapping[str, Any]) -> Right:
    """Compare an answer with what is expected."""
    named = found["named"]
    ranks = ranks_of(named["ranks"], RANKS) if named["ranks"] else frozenset()
    return Right(
        ranks == ranks_of(bug.ranks, RANKS),
        Path(named["file"]).name == bug.path.name and named["line"] in bug.lines,
        named["cause"] == bug.cause,
    )


def kept(path: Path = RESULTS) -> dict[Key, Json]:
    """Return the answers that are there, by bug and way."""
    return {(one["bug"], one["way"]): one for one in lines_in(path)}


def summary(found: Mapping[Key, Json], bugs: Sequence[Bug], way: str) -> str:
    """Return how many bugs were found."""
    asked = [(bug, one) for bug in bugs if (one := found.get((bug.name, way)))]
    score = [right(bug, one) for bug, one in asked]
    both = sum(one.rank and one.line for one in score)
    return (
        f"rank and line in {both} of {len(asked)}, cause in {sum(one.cause for one in score)}, "
        f"all three in {sum(all(one) for one in score)}"
    )


def of_many(found: Mapping[Key, Json]) -> str:
    """Return what was found at 512 ranks."""
    asked = [(found[name, FEW], found[name, MANY]) for name in OF_MANY if (name, MANY) in found]
    if not asked:
        return ""
    same = sum(few["calls"] == many["calls"] for few, many in asked)
    largest = max((many["bytes"] for _, many in asked), default=0)
    bugs = [bug for bug in BUGS if bug.name in OF_MANY]
    told = summary(found, bugs, MANY)
    return f"{told}; as many calls as at 8 in {same}; at most {largest / 1024:.0f} KB"


def row(bug: Bug, found: Mapping[Key, Json]) -> Row:
    """Return a bug's row of the table that is printed."""
    by_tools, by_hand = (found.get((bug.name, way), NOTHING) for way in WAYS)
    return (
        f"`{bug.name}`{LATE[bug.late]}",
        bug.symptom,
        str(right(bug, by_tools)),
        str(by_tools["calls"]),
        f"{by_tools['bytes'] / 1024:.1f}",
        str(right(bug, by_hand)),
        f"{by_hand['bytes'] / 1024:.0f}",
    )


def by_symptom(symptom: str, found: Mapping[Key, Json]) -> Row:
    """Return a symptom's row of the page's table."""
    bugs = [bug for bug in BUGS if bug.symptom == symptom]
    return symptom, *(summary(found, bugs, way) for way in WAYS)


def framed(head: Row, rows: Iterable[Row]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows)]


def table(found: Mapping[Key, Json]) -> str:
    """Return the table of all bugs."""
    return "\n".join(framed(HEAD, (row(bug, found) for bug in BUGS)))


def part(found: Mapping[Key, Json], before: Sequence[str]) -> str:
    """Return what stands between the marks; `before`: the scores before changes."""
    most = [
        max(found.get((bug.name, TOOLS), NOTHING)[key] for bug in BUGS)
        for key in ("calls", "bytes")
    ]
    missed = [
        f"`{bug.name}`"
        for bug in BUGS
        if not all(right(bug, found.get((bug.name, TOOLS), NOTHING))[:2])
    ]
    lines = [
        *(f"- by the tools, {each}" for each in before),
        f"- by the tools, after tools and rules were changed: {summary(found, BUGS, TOOLS)}",
        f"- by py-spy and logs: {summary(found, BUGS, BASELINE)}",
        *([f"- by the tools, at 512 simulated ranks: {told}"] if (told := of_many(found)) else []),
        f"- at most {most[0]} calls and {most[1] / 1024:.0f} KB of answers for a bug",
        f"- rank or line not found by the tools: {', '.join(missed) or NONE}",
        "",
        *framed(SYMPTOM_HEAD, (by_symptom(symptom, found) for symptom in SYMPTOMS)),
    ]
    return "\n".join([BEGIN, *lines, END])


def write(found: Mapping[Key, Json], before: Sequence[str]) -> None:
    """Write the tables to the page."""
    PAGE.write_text(changed(PAGE.read_text("utf-8"), part(found, before), BEGIN, END), "utf-8")
