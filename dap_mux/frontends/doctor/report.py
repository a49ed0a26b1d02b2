"""Formats findings, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any, Final

from dap_mux.frontends.doctor.observations import Finding, Observations
from dap_mux.pure.printable import one_line

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
