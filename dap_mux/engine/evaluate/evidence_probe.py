"""Asks ranks what they do: `injected.evidence`.

It is sent to a rank once, as bytecode where its Python has the format of this one's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

import msgspec

from dap_mux.engine.evaluate.gather_results import Result, gather_results
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.insight.why.evidence import Sample
from dap_mux.rank_sets.debuggees import DebuggeeId

SAMPLE: Final = "'{\"sample\":%s}' % own['evidence'](own['sent'])"
Samples: TypeAlias = "dict[DebuggeeId, Result[Sample]]"


class EvidenceAnswer(msgspec.Struct, frozen=True):
    """A rank's answer: a sample, or the form in which the modules must be sent to it first."""

    sample: Sample | None = None
    lacks: Literal["bytecode", "source"] | None = None

    def __post_init__(self) -> None:
        if (self.sample is None) is (self.lacks is None):
            raise ValueError("either of them is needed")


class SampleAnswer(msgspec.Struct, frozen=True):
    """The answer of a rank that has just received the modules."""

    sample: Sample


def take_samples(
    core: SessionState, ranks: Iterable[Rank], then: Callable[[Samples], None], timeout: float
) -> None:
    """Ask each rank for a sample; `then` is called once every rank has answered or is given up.

    `timeout`: seconds for each of the two questions that it takes at most.
    """
    asked = list(ranks)
    found: Samples = {}
    bundle = core.injected.bundles["evidence"]

    def brought(results: dict[DebuggeeId, Result[SampleAnswer]]) -> None:
        for id, (answer, reply) in results.items():
            found[id] = (answer.sample if answer else None, reply)
        then(found)

    def answered(results: dict[DebuggeeId, Result[EvidenceAnswer]]) -> None:
        messages: dict[DebuggeeId, str] = {}
        for id, (answer, reply) in results.items():
            if answer is not None and answer.lacks is not None:
                messages[id] = bundle.bring(SAMPLE, compiled=answer.lacks == "bytecode")
            else:
                found[id] = (answer.sample if answer else None, reply)
        lack = (rank for rank in asked if rank.id in messages)
        gather_results(core, lack, lambda rank: messages[rank.id], SampleAnswer, brought, timeout)

    question = bundle.ask(SAMPLE)
    gather_results(core, asked, lambda _: question, EvidenceAnswer, answered, timeout)
