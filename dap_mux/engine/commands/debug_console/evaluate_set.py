"""One expression in a set of ranks, answered as the one value that a debug console shows."""

from __future__ import annotations

from msgspec import Struct

from dap_mux.engine.commands.debug_console.merged_values import Values
from dap_mux.engine.evaluate.fan_out import FanOutEvaluator
from dap_mux.engine.evaluate.meshes import Meshes
from dap_mux.engine.evaluate.replies import Answers
from dap_mux.engine.evaluate.value_summaries import summarised
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.insight.compare import Tolerance


class RankSetEvaluator(Struct, eq=False):
    """The engine's part that evaluates in several ranks for `evaluate` and `%compare`."""

    _core: SessionState
    _fan_out: FanOutEvaluator
    _meshes: Meshes
    _values: Values

    def evaluate(
        self,
        request: ClientRequest,
        ranks: str,
        expression: str,
        tolerance: Tolerance | None = None,
        depth: int | None = None,
    ) -> None:
        """Evaluate in these ranks, and answer the request with one value for all of them."""

        def answered(answers: Answers) -> None:
            to_clients.respond(self._core, request, self._values.body(answers, tolerance))

        def chosen(found: list[Rank]) -> None:
            text = summarised(self._core.injected["tensor_summary"], expression)
            self._fan_out.evaluate(found, text, answered, depth=depth)

        self._meshes.choose(request, ranks, chosen)
