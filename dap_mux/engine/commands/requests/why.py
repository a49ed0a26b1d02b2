"""`why`: some samples of every rank, one after the other, and the verdict on them."""

from __future__ import annotations

from dap_mux.engine.commands.requests.cast import named
from dap_mux.engine.evaluate.gather_evidence import EvidenceGatherer
from dap_mux.engine.evaluate.meshes import Meshes
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.insight.stack_tree import Frame
from dap_mux.insight.why.evidence import Evidence
from dap_mux.insight.why.verdict import Suspect, Verdict
from dap_mux.insight.why.verdicts import judge
from dap_mux.protocol.types import WhyArguments, typed


class Why:
    """The engine's part that answers `why`."""

    def __init__(self, core: SessionState, meshes: Meshes, evidence: EvidenceGatherer) -> None:
        self._core = core
        self._meshes = meshes
        self._evidence = evidence

    def why(self, request: ClientRequest) -> None:
        """`why`: no rank is stopped for it."""
        arguments = typed(request.arguments, WhyArguments)

        def chosen(ranks: list[Rank]) -> None:
            self._evidence.gather(ranks, arguments.samples, arguments.interval, told)

        def told(evidence: Evidence) -> None:
            to_clients.respond(self._core, request, self._body(judge(evidence)))

        self._meshes.choose(request, arguments.ranks, chosen)

    def _body(self, verdict: Verdict) -> Body:
        return {
            "verdict": verdict.name,
            "sentence": verdict.sentence,
            "suspects": [self._suspect(each) for each in verdict.suspects],
            "evidence": list(verdict.evidence),
            "next": verdict.next,
        }

    def _suspect(self, suspect: Suspect) -> Body:
        return {
            "ranks": named(self._core, suspect.ranks),
            "stack": [_frame(each) for each in reversed(suspect.stack)],
            "waitingFor": suspect.waiting_for,
        }


def _frame(frame: Frame) -> Body:
    return {
        "path": frame.path,
        "line": frame.line,
        "name": frame.function,
        "library": frame.library,
    }
