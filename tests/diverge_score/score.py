"""`make diverge-score`: what is said of programs that go wrong silently, kind by kind.

It goes on where it was stopped: `build/diverge-score/KIND.jsonl` has an answer a line. Each kind is
a module with `look`, which runs a program, and `right`, which judges the answer.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import anyio

from tests.diverge_score import kind_healthy, kind_nan, kind_slow, traces
from tests.diverge_score.expected import CASES, ENVIRONMENT, Case, Kind
from tests.support.processes.commands import User

LOGS: Final = Path(__file__).resolve().parents[2] / "build" / "diverge-score"
KINDS: Final[dict[Kind, Any]] = {
    **dict.fromkeys(("replicas", "runs"), traces),
    "nan": kind_nan,
    "slow": kind_slow,
    "healthy": kind_healthy,
}


async def answer(kind: Any, case: Case, seed: int) -> dict[str, Any]:
    """Run one program, and judge what was said of it."""
    with tempfile.TemporaryDirectory() as folder:
        user = User(Path(folder))
        try:
            environ = {**ENVIRONMENT, "DIVERGE_SEED": str(seed)}
            found = await kind.look(user, case.path, case.nproc, **environ)
            return {"case": named(case, seed), **found, "right": kind.right(case, found)}
        except Exception as error:  # noqa: BLE001  (the others are looked at as well)
            return {"case": named(case, seed), "error": repr(error)[:2000], "right": {}}
        finally:
            await user.close()


def named(case: Case, seed: int) -> str:
    """The name of a look in the log."""
    return f"{case.name} {seed}" if seed else case.name


def known(log: Path) -> dict[str, dict[str, Any]]:
    """Return the answers that a log has, by case."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return {each["case"]: each for each in map(json.loads, lines)}


def main() -> int:
    """Look at each program of a kind that the log has not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--looks", type=int, default=1, help="at each, with other seeds")
    wanted = parser.parse_args()
    kind, log = KINDS[wanted.kind], LOGS / f"{wanted.kind}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    looks = [
        (case, seed)
        for seed in range(wanted.looks)
        for case in CASES
        if case.kind == wanted.kind and (not wanted.cases or case.name in wanted.cases)
    ]
    answers = known(log)
    for case, seed in looks:
        name = named(case, seed)
        if name in answers:
            continue
        answers[name] = anyio.run(answer, kind, case, seed)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(answers[name]) + "\n")
        print(name, answers[name]["right"], flush=True)
    judged = [answers[named(*look)]["right"] for look in looks]
    for what in sorted({name for each in judged for name in each}):
        count = sum(each.get(what, False) for each in judged)
        print(f"{what}: right in {count} of {len(judged)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
