"""`dap-mux diverge`: where replicas part, or two runs, by the traces of `run --comm-file`."""

from __future__ import annotations

import signal
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from dap_mux.frontends.cli.execution import execute, load_config
from dap_mux.frontends.cli.listings import Body, present
from dap_mux.pure.errors import DapMuxError, UsageError
from dap_mux.session.traces import read_trace
from dap_mux.system.config import LaunchOptions
from dap_mux.system.config.options import Address

if TYPE_CHECKING:
    from dap_mux.frontends.console.screen import Screen
    from dap_mux.pure.insight.numerics.diverge_trace import RankTrace

PARTED: Final = 10
"""The exit code where something differs."""
EXAMPLES: Final = "dap-mux diverge A, dap-mux diverge A B, dap-mux diverge -- torchrun train.py"


def main(args: Namespace) -> int:
    """Show the first difference; the exit code says whether there is one."""
    most = 1 if args.launcher else 2
    if not args.launcher and not args.traces:
        raise UsageError(f"diverge needs a trace or a launcher behind --, for example: {EXAMPLES}")
    if len(args.traces) > most:
        raise UsageError(f"diverge compares two runs, not {len(args.traces) + (most == 1)}")
    if args.equal and (args.traces or not args.launcher):
        raise UsageError(f"--equal {args.equal[0]}: only for the ranks of a launcher behind --")
    file, _, number = args.step.rpartition(":")
    if args.step and not (args.launcher and file and number.isdecimal()):
        raise UsageError(f"--step {args.step}: must be FILE:LINE, with a launcher behind --")
    runs = [read_trace(Path(each)) for each in args.traces]
    if args.launcher:
        runs.append(_recorded(args))
    if args.tolerance is not None and len(runs) != 2:
        raise UsageError(f"--tolerance {args.tolerance}: only for two runs")
    tolerance = _tolerance(args.tolerance)
    body = of_replicas(runs[0]) if len(runs) == 1 else of_runs(runs[0], runs[1], tolerance)
    present(args, body, show)
    return PARTED if body["differs"] else 0


def _tolerance(text: str | None) -> float | list[RankTrace] | None:
    """Return a relative tolerance, or the trace that tells it."""
    try:
        tolerance = None if text is None else float(text)
    except ValueError:
        return read_trace(Path(str(text)))
    if tolerance is not None and not 0 < tolerance < 1:
        raise UsageError(f"--tolerance {text}: must be a number between 0 and 1, or a trace")
    return tolerance


def _recorded(args: Namespace) -> list[RankTrace]:
    """Run the job with its trace in a temporary folder."""
    from dap_mux.session.launcher_job import run_launcher
    from dap_mux.session.terminal_output import say

    config = replace(load_config(args), wait=False, listen=Address("127.0.0.1", 0))
    with tempfile.TemporaryDirectory(prefix="dap-mux-diverge-") as folder:
        comm = "operations" if args.locate else "hash"
        options = LaunchOptions(
            config, tuple(args.launcher), comm=comm, comm_file=folder,
            comm_equal=tuple(args.equal), comm_step=args.step,
        )  # fmt: skip
        try:
            code = execute(run_launcher, options)
        except KeyboardInterrupt:
            code = 128 + signal.SIGINT
        if code:
            say(f"the job ended with exit code {code}; what it has recorded is compared")
        traces = read_trace(Path(folder))
    if args.step and not any(each.steps for each in traces):
        raise DapMuxError(f"--step {args.step}: no rank that has imported torch came to this line")
    return traces


def of_replicas(traces: Sequence[RankTrace]) -> Body:
    """Return the answer for one run."""
    from dap_mux.pure.insight.numerics.diverge import first_divergence
    from dap_mux.pure.insight.numerics.diverge_replicas import Replicas

    replicas = Replicas(traces)
    found = first_divergence(replicas)
    if found is not None:
        return {"differs": True, **msgspec.to_builtins(found)}
    steps = max((len(each) for trace in traces for each in trace.updates.values()), default=0)
    text = f"no difference; parameters compared: {replicas.count}, steps: {steps}"
    if not replicas.count:
        text = "nothing to compare; no parameter is kept equal in two ranks"
    return {"differs": False, "sentence": text}


def of_runs(
    first: Sequence[RankTrace],
    second: Sequence[RankTrace],
    tolerance: float | Sequence[RankTrace] | None = None,
) -> Body:
    """Return the answer for two runs: bitwise, or by values where they have other ranks.

    Raises DapMuxError where they have no rank, or no value, in common.
    """
    from dap_mux.pure.insight.numerics.diverge_runs import first_parting
    from dap_mux.pure.insight.numerics.diverge_values import first_beyond, have_values

    others = len(first) != len(second) and have_values(first) and have_values(second)
    if tolerance is not None or others:
        beyond = first_beyond(first, second, tolerance)
        if isinstance(beyond, str):
            return {"differs": False, "sentence": beyond}
        return {"differs": True, **msgspec.to_builtins(beyond)}
    common = {trace.rank for trace in first} & {trace.rank for trace in second}
    if not common:
        raise DapMuxError("the two runs have no rank in common")
    found = first_parting(first, second)
    if found is None:
        return {"differs": False, "sentence": f"no difference; ranks compared: {len(common)}"}
    return {"differs": True, **msgspec.to_builtins(found)}


def show(screen: Screen, body: dict[str, Any]) -> None:
    """Show an answer: the sentence, the places, then what tells them apart."""
    if not body["differs"]:
        screen.say(body["sentence"])
        return
    when = "before the first step, " if "kind" in body else ""  # a run by mpi4py has none
    when = when if body["step"] is None else f"step {body['step']}, "
    ranks = ", ".join(map(str, body["ranks"]))
    screen.say(f"{when}rank {ranks}: {body['sentence']}", "title")
    for word, name in (("at", "place"), ("second run", "other"), ("also", "also")):
        if body.get(name):
            screen.say(f"  {word}: {body[name]}")
    if body.get("equal"):
        screen.say(f"  last equal: {body['equal']}")
    for line in [*body["evidence"], *body.get("between", [])]:
        screen.say(f"  {line}")
    if body["next"]:
        screen.say(f"  try: {body['next']}")
