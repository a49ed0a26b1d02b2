"""The expressions that ask ranks what they do: `injected.evidence`.

Compiling its modules takes a rank as long as fifteen samples. So it keeps them on its debugger, and
they are sent to it once: as bytecode, where its Python has the format of this one's.
"""

from __future__ import annotations

import marshal
from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from typing import Final, Literal, TypeAlias
from zlib import compress, crc32

import msgspec

from dap_mux.engine.evaluate.gather_results import Result, gather_results
from dap_mux.engine.injected_sources import FILE_NAME, InjectedSources
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.insight.why.evidence import Sample
from dap_mux.rank_sets.debuggees import DebuggeeId

# The names of the frame where it is evaluated may be others than Python's own.
PYTHON: Final = "__import__('builtins')"
KEPT: Final = f"{PYTHON}.vars(__import__('pydevd').get_global_debugger())"
Samples: TypeAlias = "dict[DebuggeeId, Result[Sample]]"


class EvidenceAnswer(msgspec.Struct, frozen=True):
    """A rank's answer: a sample, or the form in which the modules must be sent to it first."""

    sample: Sample | None = None
    lacks: Literal["bytecode", "source"] | None = None

    def __post_init__(self) -> None:
        if (self.sample is None) is (self.lacks is None):
            raise ValueError("either of them is needed")


class TaughtAnswer(msgspec.Struct, frozen=True):
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

    def taught(results: dict[DebuggeeId, Result[TaughtAnswer]]) -> None:
        for id, (answer, reply) in results.items():
            found[id] = (answer.sample if answer else None, reply)
        then(found)

    def told(results: dict[DebuggeeId, Result[EvidenceAnswer]]) -> None:
        lessons: dict[DebuggeeId, str] = {}
        for id, (answer, reply) in results.items():
            if answer is not None and answer.lacks is not None:
                lessons[id] = teach(core.injected, compiled=answer.lacks == "bytecode")
            else:
                found[id] = (answer.sample if answer else None, reply)
        pupils = (rank for rank in asked if rank.id in lessons)
        gather_results(core, pupils, lambda rank: lessons[rank.id], TaughtAnswer, taught, timeout)

    question = ask(core.injected)
    gather_results(core, asked, lambda _: question, EvidenceAnswer, told, timeout)


@lru_cache(maxsize=8)
def ask(injected: InjectedSources) -> str:
    """Return an expression for JSON of `EvidenceAnswer`."""
    magic = "__import__('importlib.util').util.MAGIC_NUMBER"
    lacks = f"'bytecode' if {magic} == {MAGIC_NUMBER!r} else 'source'"
    return (
        f"(lambda own: own['told'](own) if own else '{{\"lacks\":\"%s\"}}' % ({lacks}))"
        f"({KEPT}.get({_key(injected)!r}))"
    )


@lru_cache(maxsize=8)
def teach(injected: InjectedSources, *, compiled: bool) -> str:
    """Return an expression for JSON of `TaughtAnswer`, which brings the modules along.

    `compiled`: as bytecode of this Python, else as sources.
    """
    sources = _sources(injected)
    run = "own['sent']['evidence']"
    if compiled:
        load, packed = "__import__('marshal').loads", marshal.dumps(_compiled(sources))
    else:
        load, packed = "__import__('json').loads", msgspec.json.encode(sources)
        run = f"python.compile({run}, {FILE_NAME!r}, 'exec')"
    text = b64encode(compress(packed, 9)).decode()
    sent = f"{load}(__import__('zlib').decompress(__import__('base64').b64decode({text!r})))"
    told = "lambda own: '{\"sample\":%s}' % own['evidence'](own['sent'])"
    return (
        f"(lambda python, own: (python.exec({run}, own),"
        f" {KEPT}.update({{{_key(injected)!r}: own}}), own['told'](own))[-1])"
        f"({PYTHON}, {{'sent': {sent}, 'told': {told}}})"
    )


def _compiled(sources: dict[str, str]) -> dict[str, object]:
    """Return them without docstrings."""
    return {
        name: compile(source, FILE_NAME, "exec", dont_inherit=True, optimize=2)
        for name, source in sources.items()
    }


def _key(injected: InjectedSources) -> str:
    """Return the name that a rank keeps them under: another version of ours has another."""
    return f"dap_mux_evidence_{crc32(msgspec.json.encode(_sources(injected))):08x}"


def _sources(injected: InjectedSources) -> dict[str, str]:
    return {
        "evidence": injected.evidence,
        "flight_recorder": injected.flight_recorder,
        "held_locks": injected.held_locks,
        "progress": injected.progress,
        "source_code": injected.source_code,
        "stacks": injected.stacks,
        "static_values": injected.static_values,
        "thread_states": injected.thread_states,
        "waiting_calls": injected.waiting_calls,
    }
