"""`compare`: one expression in many ranks; equal values together, outliers named."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.fan_out import FanOutEvaluator
from dap_mux.engine.values.meshes import Meshes
from dap_mux.engine.values.replies import Answers
from dap_mux.pure.insight.compare import Comparison, Tolerance, compare
from dap_mux.pure.insight.fold import most_first
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.types import CompareArguments, ToleranceArguments
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.remote.probes import summarised


class Compare(Struct, eq=False):
    """The engine's part that answers `compare`."""

    _core: SessionState
    _fan_out: FanOutEvaluator
    _meshes: Meshes

    def compare(self, request: ClientRequest) -> None:
        """`compare`: tensors and arrays are summarised in the rank."""
        arguments = typed(request.arguments, CompareArguments)
        tolerance = _tolerance(arguments)

        def answered(answers: Answers) -> None:
            body = body_of(self._core, answers, tolerance)
            to_clients.respond(self._core, request, body)

        def chosen(ranks: list[Rank]) -> None:
            text = summarised(self._core.injected["tensor_summary"], arguments.expression)
            self._fan_out.evaluate(ranks, text, answered, arguments.timeout, depth=arguments.frame)

        self._meshes.choose(request, arguments.ranks, chosen)


def _tolerance(arguments: CompareArguments) -> Tolerance:
    said = arguments.tolerance
    if isinstance(said, ToleranceArguments):
        return Tolerance(said.relative, said.absolute)
    return Tolerance(relative=said)


def comparison_of(answers: Answers, tolerance: Tolerance) -> Comparison:
    """Compare what ranks have said."""
    return compare({rank: answer.value for rank, answer in answers.values.items()}, tolerance)


def body_of(core: SessionState, answers: Answers, tolerance: Tolerance) -> Body:
    """Return the body of `compare`; every key is always there."""
    found = comparison_of(answers, tolerance)
    return {
        "values": [
            {"ranks": named(core, one.ranks), "value": one.value, "outlier": one.outlier}
            for one in found.groups
        ],
        "statistics": msgspec.to_builtins(found.statistics),
        "outliers": named(core, found.outliers),
        "errors": [
            {"ranks": named(core, ranks), "message": message}
            for message, ranks in most_first(answers.errors)
        ],
        "missing": named(core, answers.missing),
    }
