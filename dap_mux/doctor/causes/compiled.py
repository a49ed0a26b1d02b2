"""A breakpoint in code that torch has compiled, in which no line stops."""

from __future__ import annotations

from typing import Final

from dap_mux.doctor.finding import Finding
from dap_mux.doctor.observations import Observations
from dap_mux.doctor.snapshot import SessionSnapshot
from dap_mux.engine.evaluate.torch_probe import COMPILED, compiled
from dap_mux.injected import source_of

CAUSE: Final = "compiled"


async def examine(observed: Observations) -> list[Finding]:
    """Check breakpoints, and lines that the user asked about."""
    findings = []
    for snapshot in observed.snapshots:
        told = {
            f"{one['path']}:{one['line']}": (str(one["message"]),)
            for one in snapshot.breakpoints
            if COMPILED in str(one["message"])
        }
        places = [(str(one["path"]), one["line"]) for one in snapshot.breakpoints if one["path"]]
        places += [(place.path, place.line) for place in observed.places]
        asked = await _seen(snapshot, sorted({(path, line) for path, line in places if line}))
        findings += [_finding(where, seen) for where, seen in {**asked, **told}.items()]
    return findings


async def _seen(
    snapshot: SessionSnapshot, places: list[tuple[str, int]]
) -> dict[str, tuple[str, ...]]:
    """Ask ranks about these lines, if they know the files by the same paths."""
    seen: dict[str, tuple[str, ...]] = {}
    answers = await snapshot.ask(compiled(source_of("torch_state"), places)) if places else {}
    for ranks, answer in answers.items():
        for one in answer if isinstance(answer, list) else []:
            if isinstance(one, list) and len(one) == 4:  # a path, a line and two functions
                path, line, function, root = one
                into = f", inlined into {root}" if root else ""
                text = f"rank {ranks}: torch has compiled {function}{into}"
                seen[f"{path}:{line}"] = (*seen.get(f"{path}:{line}", ()), text)
    return seen


def _finding(where: str, seen: tuple[str, ...]) -> Finding:
    return Finding(
        CAUSE,
        f"{where} is in code that torch.compile has compiled: breakpoints never stop there",
        seen,
        (
            "start the job with TORCH_COMPILE_DISABLE=1, so that everything runs as plain Python",
            "or put @torch.compiler.disable before that function",
        ),
        where=where,
    )
