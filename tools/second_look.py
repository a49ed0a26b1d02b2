"""Run tests in CI so that a failure is looked at twice, and every second look is reported.

`second_look.py first FOLDER ARGUMENT...` runs pytest with these arguments and keeps its report in
FOLDER. Tests that failed make it exit 0 all the same, because the second look judges them; anything
else that went wrong (a crash, a collection error, no tests, too many failures) is passed on.

`second_look.py second FOLDER` runs the failed tests of all reports in FOLDER once more, alone, one
after the other. It exits 0 if they all pass, prints their names under "unstable", and keeps both
outputs of each in FOLDER/unstable.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_FAILURES = 10
TESTS_FAILED = 1  # pytest's exit code for it; higher ones mean that the run itself went wrong
CRASHED = 3  # pytest's exit code for an internal error


def main(arguments: list[str]) -> int:
    """Run the subcommand; return the exit code."""
    match arguments:
        case ["first", folder, *rest]:
            return first_look(Path(folder), rest)
        case ["second", folder]:
            return second_look(Path(folder))
    print(__doc__, file=sys.stderr)
    return 2


def first_look(folder: Path, arguments: list[str]) -> int:
    """Run pytest and keep its report; return 0 if it ran to its end with few enough failures."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / f"first-{len(list(folder.glob('first-*.jsonl'))) + 1}.jsonl"
    status = run_pytest(report, arguments)
    if status != TESTS_FAILED:
        return status
    if not finished(report):
        print(f"pytest ended before its report was complete: {report}", file=sys.stderr)
        return CRASHED
    failed = all_failures(folder)
    if len(failed) > MAX_FAILURES:
        print(f"{len(failed)} tests failed: too many for a second look", file=sys.stderr)
        return TESTS_FAILED
    return 0 if failures(report) else TESTS_FAILED


def second_look(folder: Path) -> int:
    """Run what failed once more, alone; return 0 if every test passes now."""
    failed = all_failures(folder)
    if not failed:
        print("unstable: none")
        return 0
    print(f"second look at {len(failed)} failed tests, alone:", *failed, sep="\n  ", flush=True)
    report = folder / "second.jsonl"
    status = run_pytest(report, list(failed))
    again = failures(report) if report.exists() else {}
    for test, first in failed.items():
        keep(folder / "unstable", test, first, again.get(test, "passed\n"))
    if status:
        print("failed twice:", *(again or failed), sep="\n  ")
        return status
    print(f"unstable: {', '.join(failed)}")
    print(f"both outputs of each are in {folder / 'unstable'}")
    return 0


def run_pytest(report: Path, arguments: list[str]) -> int:
    """Run pytest with a report of what happened; return its exit code."""
    command = [sys.executable, "-m", "pytest", f"--report-log={report}", *arguments]
    return subprocess.run(command, check=False).returncode


def all_failures(folder: Path) -> dict[str, str]:
    """Return the failed tests of every first look so far, each with its output."""
    reports = sorted(folder.glob("first-*.jsonl"))
    return {test: text for report in reports for test, text in failures(report).items()}


def failures(report: Path) -> dict[str, str]:
    """Return the tests that failed, by node id, each with what it left: traceback and output."""
    found: dict[str, str] = {}
    for entry in entries(report):
        if entry.get("$report_type") == "TestReport" and entry["outcome"] == "failed":
            found[entry["nodeid"]] = found.get(entry["nodeid"], "") + describe(entry)
    return found


def finished(report: Path) -> bool:
    """Whether pytest reached the end of its run: a process that is killed leaves no last entry."""
    return any(entry.get("$report_type") == "SessionFinish" for entry in entries(report))


def entries(report: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a report, without a last line that a killed run has cut off."""
    lines = report.read_text(encoding="utf-8").split("\n")
    return (json.loads(line) for line in lines[:-1])


def describe(entry: dict[str, Any]) -> str:
    """Return a report's traceback and captured output as text."""
    trace = entry["longrepr"]
    if isinstance(trace, dict):
        crash = trace.get("reprcrash") or {}
        trace = f"{readable(trace)}\n{crash.get('message', '')}"
    sections = [f"--- {title} ---\n{text}" for title, text in entry["sections"]]
    return "\n".join([f"=== {entry['when']} ===", str(trace), *sections, ""])


def readable(trace: dict[str, Any]) -> str:
    """Return the lines of a serialized traceback, with the place of each of its entries."""
    lines: list[str] = []
    for item in trace["reprtraceback"]["reprentries"]:
        data = item["data"]
        lines += data.get("lines", [])
        place = data.get("reprfileloc")
        if place:
            lines.append(f"{place['path']}:{place['lineno']}: {place['message']}")
    return "\n".join(lines)


def keep(folder: Path, test: str, first: str, second: str) -> None:
    """Write both outputs of a test to a folder of its own."""
    place = folder / re.sub(r"[^\w.-]+", "_", test)[:120]
    place.mkdir(parents=True, exist_ok=True)
    (place / "first.txt").write_text(f"{test}\n{first}", encoding="utf-8")
    (place / "second.txt").write_text(f"{test}\n{second}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
