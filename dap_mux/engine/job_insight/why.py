"""`why`: some samples of every rank, one after the other, and the verdict on them."""

from __future__ import annotations

from functools import partial

from dap_mux.engine.job_insight.gather_evidence import EvidenceGatherer
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.meshes import Meshes
from dap_mux.insight.why.evidence import Evidence
from dap_mux.insight.why.verdict import answer
from dap_mux.insight.why.verdicts import judge
from dap_mux.protocol.types import WhyArguments
from dap_mux.protocol.validation import typed


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
            body = answer(judge(evidence), partial(named, self._core), evidence)
            to_clients.respond(self._core, request, body)

        self._meshes.choose(request, arguments.ranks, chosen)
