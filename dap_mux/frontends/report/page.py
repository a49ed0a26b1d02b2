"""`report.html`: the report as one static page, without script and without network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import PurePath
from typing import Final

from dap_mux.frontends.report.report_file import At, Body, Contents, Frame, Stop, Variable
from dap_mux.pure.printable import one_line, printable
from dap_mux.pure.rank_sets.world import fold_numbers

MAX_GROUPS: Final = 8
"""Different values of a variable that are shown."""
MAX_RANKS: Final = 4
"""Ranks at one place whose frames are shown with their variables."""
MAX_VALUE: Final = 200
MAX_LINES: Final = 2000
"""Of output that are shown."""
AROUND: Final = 8
"""Lines of a source on each side of a frame's."""
MAX_RANGE: Final = 65_536
_PLAIN_SET: Final = re.compile(r"[\d,-]+")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
CSS: Final = """
:root { color-scheme: light dark; --line: #d0d7de; --soft: #f6f8fa; --dim: #59636e;
  --bad: #b42318; --bad-soft: #fdecea; --good: #1a7f37; --mark: #fff3c4; }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --soft: #161b22; --dim: #9198a1;
  --bad: #ff8a80; --bad-soft: #3a1d1d; --good: #56d364; --mark: #443a12; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
pre, code, td.value { font: 13px/1.5 ui-monospace, monospace; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .6rem;
  overflow-x: auto; margin: .4rem 0; max-height: 32rem; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--dim); }
.ranks { white-space: nowrap; color: var(--dim); }
.headline { border-left: 5px solid var(--good); padding: .6rem 1rem; background: var(--soft); }
.headline.failed { border-color: var(--bad); }
.out { color: var(--bad); background: var(--bad-soft); }
.dim { color: var(--dim); }
mark { background: var(--mark); color: inherit; display: inline-block; width: 100%; }
details { border: 1px solid var(--line); border-radius: 6px; padding: .3rem .8rem; margin: .5rem 0;
}
summary { cursor: pointer; overflow-wrap: anywhere; }
"""


def page_of(contents: Contents) -> str:
    """Return the page; every text of the job is escaped, and nothing in it can run or load."""
    digest = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    body = "\n".join((*_head(contents), *_stops(contents), *_output(contents), *_sources(contents)))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{_text(contents.report.end)}</title>\n<style>{CSS}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _text(text: object, most: int = 2000) -> str:
    """Return a text of the job on one line."""
    shown = str(text)
    return escape(one_line(shown[:most] + "…" * (len(shown) > most)))


def _block(text: str) -> str:
    return f"<pre>{escape(printable(text))}</pre>"


def _table(head: Sequence[str], rows: Iterable[str]) -> str:
    cells = "".join(f"<th>{each}</th>" for each in head)
    return f"<table><tr>{cells}</tr>{''.join(rows)}</table>"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{each}</td>' for each in cells)}</tr>"


# The job


def _head(contents: Contents) -> Iterator[str]:
    report, why = contents.report, contents.report.why
    failed = bool(report.job_exit or report.verdict_exit)
    yield f'<div class="headline{" failed" * failed}"><h1>{_text(report.end)}</h1>'
    if why:
        yield f"<p><b>{_text(why.get('verdict', ''))}</b>: {_text(why.get('sentence', ''))}</p>"
    codes = (("job", report.job_exit), ("verdict", report.verdict_exit))
    said = [f"exit code of the {name}: {code}" for name, code in codes if code is not None]
    said += [f"{len(report.ranks)} ranks", report.made, report.made_by]
    yield f'<div class="dim">{_text(" · ".join(said))}</div></div>'
    if report.command:
        yield _block(" ".join(report.command))
    if why.get("evidence"):
        yield _block("\n".join(map(str, why["evidence"])))
    if report.end_block:
        yield _block(report.end_block)
    if report.states:
        yield "<h2>Ranks by state</h2>"
        rows = (_row(_text(state), _text(ranks)) for state, ranks in report.states.items())
        yield _table(("state", "ranks"), rows)


# Stops


def _stops(contents: Contents) -> Iterator[str]:
    before = contents.report.stops_before
    if contents.stops:
        yield f"<h2>Stops{f' ({before} earlier ones were not kept)' * bool(before)}</h2>"
    for number, stop in enumerate(contents.stops, before + 1):
        latest = " open" * (stop is contents.stops[-1])
        yield f"<details{latest}><summary><b>{number}</b> · {_text(f'{stop.after_s:.1f}')} s · "
        yield f"{_text(stop.title)}</summary>"
        yield from _stop(stop)
        yield "</details>"


def _stop(stop: Stop) -> Iterator[str]:
    for expression, body in stop.compared.items():
        yield f"<h3>{_text(expression)}</h3>"
        yield _table(("ranks", "value"), _compared(body))
    places: dict[tuple[str, str, int], list[At]] = {}
    for at in stop.at:
        inner = _own(at)
        places.setdefault((at.state, inner.path, inner.line), []).append(at)
    for (state, path, line), ats in places.items():
        ranks = _named(ats)
        where = f" at {PurePath(path).name}:{line} {_own(ats[0]).name}" if path else ""
        reason = f" ({ats[0].reason})" if ats[0].reason else ""
        yield f"<h3>{_text(f'{ranks}: {state}{where}{reason}')}</h3>"
        for failure in dict.fromkeys(at.exception for at in ats if at.exception):
            yield _block(failure.traceback or f"{failure.type}: {failure.text}")
        yield from _values(ats)
        yield from _frames(ats)
    if stop.stacks.get("threads"):
        lines = [line for each in stop.stacks["threads"] for line in _tree(each["branches"], 0)]
        yield f"<h3>Stacks</h3>{_block(chr(10).join(lines))}"


def _named(ats: Sequence[At]) -> str:
    return _ranks(_joined([at.ranks for at in ats]))


def _ranks(named: str) -> str:
    return f"rank{'s' * (not named.isdecimal())} {named}"


def _joined(sets: Sequence[str]) -> str:
    """Return several rank sets as one, as far as they have no groups."""
    if not all(map(_PLAIN_SET.fullmatch, sets)):
        return ", ".join(sets)
    return fold_numbers(number for each in sets for number in _numbers(each))


def _numbers(ranks: str) -> Iterator[int]:
    for first, last in _RANGE.findall(ranks):
        yield from range(int(first), min(int(last or first), int(first) + MAX_RANGE) + 1)


def _own(at: At) -> Frame:
    """Return the innermost frame of the program's own."""
    frames = at.threads[0].frames if at.threads else ()
    own = (each for each in frames if not each.library)
    return next(own, frames[0] if frames else Frame("", "", 0))


def _compared(body: Body) -> Iterator[str]:
    for one in body.get("values", ()):
        yield _value(str(one["ranks"]), str(one["value"]), outlier=bool(one.get("outlier")))
    for one in body.get("errors", ()):
        yield _value(str(one["ranks"]), str(one["message"]), outlier=True)


def _value(ranks: str, value: str, *, outlier: bool) -> str:
    mark = ' class="out"' * outlier
    return f'<tr{mark}><td class="ranks">{_text(ranks)}</td><td>{_text(value, MAX_VALUE)}</td></tr>'


def _values(ats: Sequence[At]) -> Iterator[str]:
    """Show the variables of the innermost own frame, those that differ between ranks first."""
    by_name: dict[str, dict[str, list[str]]] = {}
    for at in ats:
        for one in _own(at).locals:
            by_name.setdefault(one.name, {}).setdefault(one.value, []).append(at.ranks)
    rows = []
    for name, values in sorted(by_name.items(), key=lambda one: len(one[1]) == 1):
        counts = {
            value: sum(1 for each in ranks for _ in _numbers(each))
            for value, ranks in values.items()
        }
        most = max(counts.values())
        shown = sorted(values.items(), key=lambda one: -counts[one[0]])[:MAX_GROUPS]
        for value, ranks in shown:
            mark = ' class="out"' * (counts[value] < most)
            label = _text(_joined(ranks)) if len(values) > 1 else "all"
            rows.append(
                f'<tr{mark}><td>{_text(name)}</td><td class="ranks">{label}</td>'
                f'<td class="value">{_text(value, MAX_VALUE)}</td></tr>'
            )
        if len(values) > len(shown):
            rows.append(_row(_text(name), "", f"… {len(values) - len(shown)} more values"))
    if rows:
        yield _table(("variable", "ranks", "value"), rows)


def _frames(ats: Sequence[At]) -> Iterator[str]:
    for at in ats[:MAX_RANKS]:
        if not any(frame.locals for thread in at.threads for frame in thread.frames):
            continue
        yield f"<details><summary>Frames of {_text(at.ranks)}</summary>"
        for frame in at.threads[0].frames:
            place = f"{frame.name}  {frame.path}:{frame.line}"
            dim = ' class="dim"' * frame.library
            yield f"<div{dim}><code>{_text(place)}</code></div>"
            if frame.locals:
                yield _block("\n".join(_variables(frame.locals, "")))
        yield "</details>"
    if len(ats) > MAX_RANKS:
        yield f'<p class="dim">… and of {len(ats) - MAX_RANKS} more; `dap-mux open` has them</p>'


def _variables(of: Iterable[Variable], indent: str) -> Iterator[str]:
    for one in of:
        yield one_line(f"{indent}{one.name} = {one.value[:MAX_VALUE]}")
        yield from _variables(one.children, f"{indent}    ")


def _tree(branches: Sequence[Body], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for branch in branches:
        yield one_line(f"{indent}{{{branch['ranks']}}}")
        for frame in branch["frames"]:
            if not frame["library"]:
                name = PurePath(str(frame["path"])).name
                yield one_line(f"{indent}  {frame['name']}  {name}:{frame['line']}")
        yield from _tree(branch["branches"], depth + 1)


# Output and sources


def _output(contents: Contents) -> Iterator[str]:
    by_ranks: dict[str, list[str]] = {}
    left = MAX_LINES
    for one in reversed(contents.output):
        lines = one.text.splitlines()
        by_ranks.setdefault(one.ranks, []).extend(reversed(lines[max(0, len(lines) - left) :]))
        left = max(0, left - len(lines))
    if by_ranks:
        yield "<h2>Output by rank</h2>"
    for ranks, lines in sorted(by_ranks.items()):
        yield f"<details open><summary>{_text(_ranks(ranks) if ranks else 'the job')}</summary>"
        yield f"{_block(chr(10).join(reversed(lines)))}</details>"


def _sources(contents: Contents) -> Iterator[str]:
    """Show the lines round each frame of the stops."""
    marked: Mapping[str, Counter[int]] = {path: Counter() for path in contents.texts}
    for stop in contents.stops:
        for at in stop.at:
            for frame in (frame for thread in at.threads for frame in thread.frames):
                if frame.path in marked:
                    marked[frame.path][frame.line] += 1
    if contents.texts:
        yield "<h2>Sources</h2>"
    for path, text in contents.texts.items():
        lines = text.splitlines()
        near = {
            number for line in marked[path] for number in range(line - AROUND, line + AROUND + 1)
        }
        shown = [number for number in sorted(near) if 1 <= number <= len(lines)]
        yield f"<details open><summary><code>{_text(path)}</code></summary><pre>"
        for before, number in zip([0, *shown], shown, strict=False):
            gap = "…\n" * (before != number - 1)
            line = f"{number:5}  {escape(one_line(lines[number - 1]))}"
            yield gap + (f"<mark>{line}</mark>" if number in marked[path] else line)
        yield "</pre></details>"
