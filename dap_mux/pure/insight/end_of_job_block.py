"""The end of a job as the terminal shows it: a short block, however many ranks there are."""

from __future__ import annotations

from typing import Final

from dap_mux.pure.insight.end_of_job import EndOfJob, seconds
from dap_mux.pure.printable import one_line

MAX_LINE: Final = 400
MAX_MESSAGE_LINES: Final = 6
MAX_OTHERS: Final = 6
MAX_VERSIONS = MAX_HOSTS = 6
KEPT: Final = "TMPDIR/dap-mux-ranks-kept-*"
"""Where `black_box` keeps the files of a rank on a host that shares no folder with the session."""


def lines_of(end: EndOfJob) -> list[str]:
    """Return the block, the first line being its heading; no word of a rank's makes a new line."""
    lines = [_bounded(one_line(line)) for line in _lines(end)]
    return [*lines, f"  next    {one_line(end.next)}"] if end.next else lines


def _bounded(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}..."


def _lines(end: EndOfJob) -> list[str]:
    first = end.first
    if first is None:
        none = "no rank of it failed, as far as is known"
        return [f"the job failed: exit code {end.code}; {none}", *_also(end)]
    guess = "" if first.certain else " (probably)"
    lines = [f"the job failed: exit code {end.code}; first{guess}: {first.ranks}, {first.how}"]
    if first.place.line:
        called = f", which called {first.place.called}" if first.place.called else ""
        lines.append(f"  at      {first.place}{called}  ({first.place.file})")
    if first.place.source:
        lines.append(f"            {first.place.source}")
    lines += [f"            {name} = {value}" for name, value in first.place.values.items()]
    lines += [f"          {line}" for line in _rest_of_message(first.message)]
    lines.append(f"  because {first.because}")
    heads = ["  printed ", *["          "] * len(first.printed)]
    lines += [f"{head}{line}" for head, line in zip(heads, first.printed, strict=False)]
    return lines + _also(end)


def _rest_of_message(message: str) -> list[str]:
    lines = [line for line in message.strip().splitlines()[1:] if line.strip()]
    return lines[:MAX_MESSAGE_LINES]


def _also(end: EndOfJob) -> list[str]:
    lines = [f"  then    {one.ranks}, {seconds(one.after)} later: {one.how}" for one in end.others]
    if len(lines) > MAX_OTHERS:
        lines[MAX_OTHERS:] = [f"  then    {len(lines) - MAX_OTHERS} more; --end-json has them"]
    if end.missing:
        lines.append(f"  missing {end.missing} never started, or out of this session's reach")
    for host, ranks in [*end.unseen.items()][:MAX_HOSTS]:
        lines.append(f"  unseen  {ranks}: what they left is on {host}, in {KEPT}")
    for name, versions in [*end.versions.items()][:MAX_VERSIONS]:
        each = "; ".join(f"{version} on {of}" for version, of in versions.items())
        lines.append(f"  differ  {name}: {each}")
    return lines
