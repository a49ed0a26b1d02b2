"""Every cause the doctor knows, one row each, and how findings are printed.

An unreachable rank has one cause: the first of `REACHING` that applies to its endpoint; ranks with
the same cause are reported together. Every row of `OTHERS` examines all observations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Final

from dap_mux.frontends.doctor.causes import breakpoints, file_mapping, processes, reaching
from dap_mux.frontends.doctor.observations import Finding, Observations, Subject
from dap_mux.pure.printable import one_line


@dataclass(frozen=True)
class Reaching:
    """Why a rank cannot be reached."""

    name: str
    applies: Callable[[Subject, Observations], bool]
    explain: Callable[[Sequence[Subject], Observations], reaching.Explanation]


REACHING: Final = (
    Reaching("already-attached", reaching.already_attached_applies, reaching.already_attached),
    Reaching("wedged-adapter", reaching.wedged_applies, reaching.wedged),
    Reaching("port-range", reaching.port_range_applies, reaching.port_range),
    Reaching("tunnel-down", reaching.tunnel_down_applies, reaching.tunnel_down),
    Reaching("wrong-port", reaching.wrong_port_applies, reaching.wrong_port),
    Reaching("refused", reaching.refused_applies, reaching.refused),
)
Examine = Callable[[Observations], Awaitable[list[Finding]]]
OTHERS: Final[tuple[Examine, ...]] = (
    processes.examine_debugpy_version,
    file_mapping.examine_file_mapping,
    breakpoints.examine_just_my_code,
    breakpoints.examine_condition,
    breakpoints.examine_condition_cost,
    breakpoints.examine_compiled,
    processes.examine_ptrace,
    processes.examine_clock,
)


async def examine(observed: Observations) -> list[Finding]:
    """Return all findings, unreachable ranks first."""
    findings = list(_reaching(observed))
    for look_for in OTHERS:
        findings += await look_for(observed)
    return findings


def _reaching(observed: Observations) -> Iterator[Finding]:
    found: dict[tuple[Reaching, str], list[Subject]] = {}
    for subject in observed.troubled():
        cause = next((one for one in REACHING if one.applies(subject, observed)), None)
        if cause is not None:
            found.setdefault((cause, subject.named), []).append(subject)
    for (cause, _), subjects in found.items():
        said = cause.explain(subjects, observed)
        ranks, where = reaching.ranks_of(subjects), reaching.endpoints_of(subjects)
        seen = reaching.lines(said.evidence)
        yield Finding(cause.name, said.summary, seen, said.fix, ranks=ranks, where=where)


# Formats findings, as text and as JSON.

VERSION: Final = 1
WIDTH: Final = 100
INDENT: Final = "   "
HEALTHY: Final = "no problems found"


def as_json(observed: Observations, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return JSON; all keys are always present, causes are numbered as in the text."""
    return {
        "version": VERSION,
        "healthy": not findings,
        "lookedAt": observed.looked_at,
        "causes": [
            {
                "number": number,
                "cause": one.cause,
                "summary": one.summary,
                "ranks": one.ranks,
                "where": one.where,
                "evidence": list(one.evidence),
                "fix": list(one.fix),
                "paste": one.paste,
            }
            for number, one in enumerate(findings, 1)
        ],
    }


def as_text(observed: Observations, findings: Sequence[Finding]) -> str:
    """Return text, with control characters of ranks and processes escaped."""
    return "\n".join(_lines(observed, findings))


def _lines(observed: Observations, findings: Sequence[Finding]) -> Iterator[str]:
    looked_at = "; ".join([*observed.looked_at, "this machine"])
    yield _wrapped(f"looked at: {looked_at}", "", "  ")
    for number, one in enumerate(findings, 1):
        yield ""
        yield _wrapped(f"{number}. {_summary(one)}  [{one.cause}]", "", INDENT)
        for text in one.evidence:
            yield _item("seen: ", text)
        for text in one.fix:
            yield _item("do:   ", text)
        yield from _paste(one)
    yield from _verdict(findings)


def _verdict(findings: Sequence[Finding]) -> Iterator[str]:
    """The last lines: they stay on the screen when those above have scrolled away."""
    if not findings:
        yield HEALTHY
        return
    first, count = findings[0], len(findings)
    found = "1 problem found" if count == 1 else f"{count} problems found; begin with the first"
    yield ""
    yield _wrapped(f"{found}: {_summary(first)}", "", INDENT)
    for text in first.fix[:1]:
        yield _item("do:   ", text)
    if len(first.fix) == 1:  # what to paste belongs to the last line
        yield from _paste(first)


def _summary(one: Finding) -> str:
    return f"{one.summary} (ranks {one.ranks})" if one.ranks else one.summary


def _item(name: str, text: str) -> str:
    return _wrapped(name + text, INDENT, INDENT + " " * len(name))


def _paste(one: Finding) -> Iterator[str]:
    for text in one.paste.splitlines():
        yield f"{INDENT}      {one_line(text)}"


def _wrapped(text: str, first: str, rest: str) -> str:
    return fill(
        one_line(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
