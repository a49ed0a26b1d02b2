"""The parts that are made for the first request that needs them.

An editor waits for a session to start, and what these import is an eighth of a session's modules.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View
from dap_mux.engine.stops.control import Control, StopWaiters
from dap_mux.engine.values.inspect import Inspector
from dap_mux.engine.values.meshes import Meshes

if TYPE_CHECKING:
    from dap_mux.engine.barriers.differ import DifferBreakpoints, MissingRanks
    from dap_mux.engine.debug_console.console import OnBehalf
    from dap_mux.engine.debug_console.evaluate import Evaluation
    from dap_mux.engine.job_insight.gather_evidence import (
        EvidenceGatherer,
        HeldUpRanks,
        StackTrees,
        Why,
    )
    from dap_mux.engine.pdb.cast import Cast
    from dap_mux.engine.session.groups import Groups
    from dap_mux.engine.values.fan_out import Compare, FanOutEvaluator


class OnDemand(Struct, eq=False, dict=True):
    """Those that evaluate in many ranks, and that read what users type.

    `on_behalf` makes one of our requests for a client (`Requests.on_behalf`).
    """

    _core: SessionState
    _view: View
    _meshes: Meshes
    _control: Control
    _edits: BreakpointEdits
    _stop_waiters: StopWaiters
    _inspector: Inspector
    _on_behalf: OnBehalf

    @cached_property
    def cast(self) -> Cast:
        """`cast`: a command of pdb's in many ranks."""
        from dap_mux.engine.pdb.cast import Cast

        return Cast(
            self._core, self._meshes, self._fan_out, self._stop_waiters, self._control, self._edits
        )

    @cached_property
    def compare(self) -> Compare:
        """`compare`: an expression in many ranks."""
        from dap_mux.engine.values.fan_out import Compare

        return Compare(self._core, self._fan_out, self._meshes)

    @cached_property
    def stacks(self) -> StackTrees:
        """`stacks`: all ranks' stacks as one tree."""
        from dap_mux.engine.job_insight.gather_evidence import StackTrees

        return StackTrees(self._core, self._meshes)

    @cached_property
    def why(self) -> Why:
        """`why`: what keeps the job from moving on."""
        from dap_mux.engine.job_insight.gather_evidence import Why

        return Why(self._core, self._meshes, self.evidence)

    @cached_property
    def evidence(self) -> EvidenceGatherer:
        """Looks at what ranks do, from inside and from outside."""
        from dap_mux.engine.job_insight.gather_evidence import EvidenceGatherer

        return EvidenceGatherer(self._core)

    @cached_property
    def missing_ranks(self) -> MissingRanks:
        """Tells clients who is missing at a barrier."""
        from dap_mux.engine.barriers.differ import MissingRanks

        return MissingRanks(self._core)

    @cached_property
    def held_up(self) -> HeldUpRanks:
        """Finds ranks that wait for others that stand."""
        from dap_mux.engine.job_insight.gather_evidence import HeldUpRanks

        return HeldUpRanks(self._core, self.evidence)

    @cached_property
    def differ(self) -> DifferBreakpoints:
        """Compares the ranks at a differ breakpoint."""
        from dap_mux.engine.barriers.differ import DifferBreakpoints

        return DifferBreakpoints(self._core, self._control.stops.barriers)

    @cached_property
    def groups(self) -> Groups:
        """`groups`: rank sets with names."""
        from dap_mux.engine.session.groups import Groups

        return Groups(self._core, self._meshes, self._edits)

    @cached_property
    def evaluation(self) -> Evaluation:
        """`evaluate`, with the debug console's commands, and what completes it."""
        from dap_mux.engine.debug_console.console import Console
        from dap_mux.engine.debug_console.evaluate import Evaluation
        from dap_mux.engine.debug_console.merged_values import (
            AggregateVariables,
            HoverEvaluator,
            RankSetEvaluator,
            Values,
        )

        core, meshes, fan_out, inspector = self._core, self._meshes, self._fan_out, self._inspector
        values = Values(core, AggregateVariables(core))
        evaluator = RankSetEvaluator(core, fan_out, meshes, values)
        console = Console(core, self._view, meshes, values, evaluator, self._on_behalf)
        hovers = HoverEvaluator(core, inspector, fan_out, values)
        return Evaluation(core, inspector, console, values, evaluator, hovers)

    @cached_property
    def _fan_out(self) -> FanOutEvaluator:
        from dap_mux.engine.values.fan_out import FanOutEvaluator

        return FanOutEvaluator(self._core, self._stop_waiters)
