"""`make replay-score`: whether a rank that is taken home is there what it was, bit by bit.

It goes on where it was stopped: `build/replay-score.jsonl` has an answer a line, a file beside it
those of another release of torch (`--torch PYTHON`). The table is printed, and written to
docs/internals/comm.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from tests.replay_score.rounds import TORCH, equal, failing, parting
from tests.replay_score.rows import CHANGES, FAILURES, JOBS, KINDS, LACKS
from tests.support.processes.commands import User
from tests.why_score.page import changed

ROOT: Final = Path(__file__).resolve().parents[2]
LOGS: Final = ROOT / "build"
LOG: Final = "replay-score.jsonl"
OTHERS: Final = "replay-score-{}.jsonl"
"""The answers with another release of torch."""
PAGE: Final = ROOT / "docs" / "internals" / "comm.md"
BEGIN: Final = "<!-- The score: written by `make replay-score`. -->"
END: Final = "<!-- The end of the score. -->"
PARTS: Final = "parts"
Json = dict[str, Any]
Answers = dict[tuple[str, int], Json]
Look = Callable[[User], Awaitable[Json]]


def asked(rounds: int, release: str) -> Iterator[tuple[str, int, Look]]:
    """Yield each round: the name of what is asked, its number, and how."""
    lacks = LACKS.get(".".join(release.split(".")[:2]), ())
    for number in range(rounds):
        for each in JOBS:
            job = each._replace(kinds=tuple(kind for kind in each.kinds if kind not in lacks))
            yield job.name, number, partial(equal, program=job, number=number)
        for failure in FAILURES:
            yield failure.way, number, partial(failing, failure=failure, number=number)
        yield PARTS, number, partial(parting, number=number)


async def answer(look: Look) -> Json:
    """Play one round."""
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        user = User(Path(folder))
        try:
            return await look(user)
        except Exception as error:  # noqa: BLE001  (the others are looked at as well)
            return {"error": repr(error)[:2000]}
        finally:
            with redirect_stdout(sys.stderr):  # what the commands have said
                await user.close()


def known(log: Path) -> Answers:
    """Return the answers that a log has."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return {(each["name"], each["round"]): each for each in map(json.loads, lines)}


def release_of(python: str) -> str:
    """Return which torch a Python has."""
    asked = [python, "-c", "import torch; print(torch.__version__.partition('+')[0])"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def others() -> list[str]:
    """Return a line for each other release of torch that was tried."""
    said = []
    for log in sorted(LOGS.glob(OTHERS.format("*"))):
        answers = known(log).values()
        kinds = [each["kinds"] for each in answers if "kinds" in each]
        equal = [same for of in kinds for steps, same in of.values() if steps or not same]
        ends = [each["same"] and each["said"] for each in answers if "same" in each]
        parts = [one for each in answers for one in each.values() if isinstance(one, dict)]
        named = [one["line"] and one["step"] for one in parts if "line" in one]
        said.append(
            f"torch {log.stem.rpartition('-')[2]}: {sum(equal)} of {len(equal)} kinds bit by bit "
            f"equal, {sum(ends)} of {len(ends)} failures, {sum(named)} of {len(named)} that part."
        )
    return said


def recordings() -> str:
    """Return the line of all that was taken; a round that hangs, or fails, has an error."""
    rounds = [each for log in LOGS.glob("replay-score*.jsonl") for each in known(log).values()]
    errors = sum("error" in each for each in rounds)
    return f"Jobs of which a rank was taken: {len(rounds)}; {errors} hung or could not be replayed."


def table(answers: Answers) -> list[str]:
    """Return the lines of the three tables."""
    rows = ["| kind | steps a round | rounds bit by bit equal |", "|---|---|---|"]
    for job in JOBS:
        rounds = [each for (name, _), each in answers.items() if name == job.name]
        for kind in job.kinds:
            of_kind = [each.get("kinds", {}).get(kind, [0, False]) for each in rounds]
            steps = max((each[0] for each in of_kind), default=0)
            right = sum(bool(each[0] and each[1]) for each in of_kind)
            rows.append(f"| {KINDS[kind]} | {steps} | {right} of {len(rounds)} |")
    as_ever = [each["as_ever"] for each in answers.values() if "as_ever" in each]
    rows += ["", f"All ranks print what they print untaken: {sum(as_ever)} of {len(as_ever)} jobs."]
    rows += ["", "| rank 2 fails at step 37 | steps equal until then | and its end is named |"]
    rows.append("|---|---|---|")
    for failure in FAILURES:
        rounds = [each for (name, _), each in answers.items() if name == failure.way]
        same, said = (sum(each.get(key, False) for each in rounds) for key in ("same", "said"))
        rows.append(f"| {failure.way} | {same} of {len(rounds)} | {said} of {len(rounds)} |")
    rows += ["", "| parts on purpose | line of the call | step | reason |", "|---|---|---|---|"]
    rounds = [each for (name, _), each in answers.items() if name == PARTS]
    for change in CHANGES:
        parts = [each.get(change.name, {}) for each in rounds]
        line, step = (sum(each.get(key, False) for each in parts) for key in ("line", "step"))
        reasons = [each["reason"] for each in parts if "reason" in each]  # asked for later
        said = (
            f"{line} of {len(rounds)} | {step} of {len(rounds)} | {sum(reasons)} of {len(reasons)}"
        )
        rows.append(f"| {change.name} | {said} |")
    return rows


def write(rows: list[str]) -> None:
    """Write the tables to the page."""
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    part = "\n".join([BEGIN, *rows, "", f"Measured at {commit.strip()}.", END])
    PAGE.write_text(changed(PAGE.read_text("utf-8"), part, BEGIN, END), "utf-8")


def main() -> int:
    """Play the rounds that the log has not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these jobs, failures, or `parts`")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--torch", metavar="PYTHON", help="of another release of torch")
    parser.add_argument("--page", action="store_true", help="only write what is known to the page")
    wanted = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    log, release = LOGS / LOG, ""
    if wanted.torch:
        os.environ[TORCH] = wanted.torch
        release = release_of(wanted.torch)
        log = LOGS / OTHERS.format(release)
    answers = known(log)
    for name, number, look in () if wanted.page else asked(wanted.rounds, release):
        if (name, number) in answers or (wanted.names and name not in wanted.names):
            continue
        found = {"name": name, "round": number, **anyio.run(answer, look)}
        answers[name, number] = found
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(json.dumps({**found, "text": ""}), flush=True)
    rows = [*table(known(LOGS / LOG)), "", *others(), "", recordings()]
    print("\n".join(rows))
    write(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
