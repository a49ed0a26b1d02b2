"""An `evaluate` in a frame of a stopped rank: through the proxy, and straight to such a rank.

The ranks are unmodified `debugpy.listen` processes; one more is as `dap-mux run` starts it, again
through a proxy. The direct client is as plain as an editor's socket, and so meets debugpy's 44 ms
(docs/internals/debugpy.md), which the proxy avoids. A timer makes them, the same on every machine;
another direct client meets none, for its rank is patched as the proxy does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from dap_mux.engine.ranks.attach_expression import attach_expression
from dap_mux.session.injected_sources import injected_sources
from tests.bench.agents import agents
from tests.bench.attaching import attach, stopped_frame
from tests.bench.figures import Figure, ahead, faster, shown, within
from tests.bench.processes import proxy
from tests.bench.real_ranks import STOP_LINE, real_ranks
from tests.bench.wire import Wire

TIMES_FASTER: Final = 20
RUN_TIMES_FASTER: Final = 100
MOST: Final = 1e-3  # s
ROUNDS: Final = 10
THROUGH: Final = 60  # a round
# A round too: one after the other, as an editor asks. The first comes fast, for after a pause the
# kernel acknowledges at once; the others wait.
DIRECT: Final = 6


def run() -> Iterator[Figure]:
    """Measure the median of both in one run, in turns."""
    with (
        real_ranks(3) as ranks,
        proxy(ranks.ports[:1]) as through,
        Wire(through.port) as ours,
        Wire(ranks.ports[1]) as direct,
        Wire(ranks.ports[2]) as undelayed,
        agents(1, Path(ranks.path)) as run_job,
        Wire(run_job.session.port) as of_run,
    ):
        frames = {}
        for wire in (ours, direct, undelayed, of_run):
            attach(wire, ranks.path, [STOP_LINE])
            frames[wire] = stopped_frame(wire)
        patches = attach_expression(injected_sources(), debug_children=False)
        undelayed.ask("evaluate", {"expression": patches})
        fast, slow, fastest, patched = [], [], [], []
        for _ in range(ROUNDS):
            slow += [_evaluate(direct, frames[direct]) for _ in range(DIRECT)]
            fast += [_evaluate(ours, frames[ours]) for _ in range(THROUGH)]
            patched += [_evaluate(undelayed, frames[undelayed]) for _ in range(THROUGH)]
            fastest += [_evaluate(of_run, frames[of_run]) for _ in range(THROUGH)]
        value = median(fast)
        yield faster(
            "evaluate p50, a rank of run",
            median(fastest),
            median(slow),
            RUN_TIMES_FASTER,
            "direct",
        )
        yield faster("evaluate p50", value, median(slow), TIMES_FASTER, "direct")
        yield within("evaluate p50", value, MOST)
        beside = "direct, its delay patched away"
        yield ahead("evaluate p50, a rank of run", median(fastest), median(patched), beside)
        yield Figure("evaluate p50", shown(value), f"{shown(median(patched))} {beside}")
        for wire in (ours, direct, undelayed, of_run):
            wire.ask("disconnect")


def _evaluate(wire: Wire, frame: int) -> float:
    arguments = {"expression": "number + 1", "frameId": frame, "context": "watch"}
    return wire.timed("evaluate", arguments).seconds
