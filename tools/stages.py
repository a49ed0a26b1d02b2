"""Run the stages of `make test` to the end, whatever fails, and report at the end what did.

`stages.py FOLDER NAME=COMMAND...` gives each command to a shell, one after the other; one written
`NAME+=COMMAND` runs beside the next, and its output is printed when both have ended. The reports of
pytest, and the output of what runs beside another, are kept in FOLDER. Exits 1 if a stage failed.

`make` itself would stop at the first failure, or with `--keep-going` end without a summary.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PICTURES: Final = "build/vscode-failures"  # where tests/vscode/conftest.py leaves them


@dataclass
class Stage:
    """One command, and after its end its exit code and how long it took."""

    name: str
    command: str
    beside: bool
    folder: Path
    code: int = 0
    seconds: float = 0.0

    @property
    def report(self) -> Path:
        """The report of each pytest that it runs; in CI, tools/second_look.py keeps its own."""
        return self.folder / f"{self.name}.jsonl"

    @property
    def output(self) -> Path:
        """What it printed, if it ran beside another."""
        return self.folder / f"{self.name}.log"

    def start(self) -> subprocess.Popen[bytes]:
        """Start its shell; what runs beside another writes into a file."""
        options = [os.environ.get("PYTEST_ADDOPTS", ""), f"--report-log={self.report}"]
        env = {**os.environ, "PYTEST_ADDOPTS": " ".join(options).strip()}
        shell = ["/bin/sh", "-c", self.command]
        if not self.beside:
            return subprocess.Popen(shell, env=env)
        with self.output.open("wb") as out:
            return subprocess.Popen(shell, env=env, stdout=out, stderr=subprocess.STDOUT)

    def failures(self) -> list[str]:
        """Node ids of the tests that failed, each once, in the order in which they did."""
        if not self.report.exists():
            return []
        lines = self.report.read_text("utf-8").split("\n")  # nothing else ends a line in JSON
        entries = (json.loads(line) for line in lines[:-1])  # a run that was killed cut the last
        failed = (entry["nodeid"] for entry in entries if entry.get("outcome") == "failed")
        return list(dict.fromkeys(failed))


def main(arguments: Sequence[str]) -> int:
    """Run all stages; return the exit code."""
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    stages = [_stage(each, folder) for each in arguments[1:]]
    for group in _groups(stages):
        _run(group)
    print(*_summary(stages), sep="\n", flush=True)
    return 1 if any(stage.code for stage in stages) else 0


def _stage(text: str, folder: Path) -> Stage:
    name, _, command = text.partition("=")
    stage = Stage(name.removesuffix("+"), command, name.endswith("+"), folder)
    stage.report.unlink(missing_ok=True)
    return stage


def _groups(stages: Iterable[Stage]) -> Iterable[list[Stage]]:
    group: list[Stage] = []
    for stage in stages:
        group.append(stage)
        if not stage.beside:
            yield group
            group = []
    if group:
        yield group


def _run(group: Sequence[Stage]) -> None:
    """Start these together, and wait for all of them; Ctrl-C reaches each by the terminal."""
    begun = time.monotonic()
    running = [(stage, stage.start()) for stage in group]
    for stage, process in reversed(running):
        stage.code = process.wait()
        stage.seconds = time.monotonic() - begun
    for stage in group:
        if stage.beside:
            print(stage.output.read_text("utf-8", errors="replace"), end="", flush=True)


def _summary(stages: Sequence[Stage]) -> Iterable[str]:
    yield ""
    for stage in stages:
        verdict = f"FAILED (exit code {stage.code})" if stage.code else "passed"
        yield f"{stage.name:12} {verdict}, {stage.seconds:.0f} s"
        yield from (f"    {test}" for test in stage.failures())
        if stage.code and stage.output.exists():
            yield f"    output: {stage.output}"
        if any(test.startswith("tests/vscode/") for test in stage.failures()):
            yield f"    pictures and logs: {PICTURES}"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
