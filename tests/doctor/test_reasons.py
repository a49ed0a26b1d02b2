"""What a session says of a rank that it cannot reach, and which cause that is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dap_mux.frontends.doctor.causes import examine
from dap_mux.frontends.doctor.machine import Machine
from dap_mux.frontends.doctor.observations import (
    KIND_BY_OUTCOME,
    HolderKind,
    Observations,
    Outcome,
    ProbeResult,
    Subject,
)


def subject(
    reason: str, state: str = "waiting", who: HolderKind = "unknown", number: int = 3
) -> Subject:
    """A rank of a session, on another host unless `who` is known."""
    return Subject(
        "node1",
        5678 + number,
        "session 127.0.0.1:5677",
        rank=("job", number),
        session="127.0.0.1:5677",
        state=state,
        reason=reason,
        who=who,
    )


@pytest.mark.parametrize(
    ("reason", "state", "cause"),
    [
        ("nothing listens on node1:5681 yet", "waiting", "refused"),
        ("nothing listens on port 5678 of pod trainer-0 yet", "waiting", "refused"),
        ("nothing listens on node1:5681 any more: the tunnel to it ...", "lost", "tunnel-down"),
        ("the tunnel to node1 is down: ssh exited with code 255", "lost", "tunnel-down"),
        ("kubectl exited with code 1: error: lost connection to pod", "waiting", "tunnel-down"),
        ("the rank closed the connection", "connecting", "tunnel-down"),
        ("the rank sent malformed data: a header of another kind", "connecting", "wrong-port"),
        ("already being debugged: by another debugger, or ...", "waiting", "already-attached"),
        ("no answer within 60 s", "connecting", "wedged-adapter"),
        ("no answer to attach", "connecting", "wedged-adapter"),
    ],
)
async def test_what_a_session_says(reason: str, state: str, cause: str) -> None:
    (found,) = await examine(Observations(Machine(), [subject(reason, state)]))
    assert (found.cause, found.ranks, found.where) == (cause, "3", "node1:5681")
    assert reason in found.evidence[0]


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        ("refused", "refused"),
        ("unreachable", "refused"),
        ("hung up", "tunnel-down"),
        ("stranger", "wrong-port"),
        ("session", "wrong-port"),
        ("taken", "already-attached"),
        ("wedged", "wedged-adapter"),
        ("refuses", "wedged-adapter"),
    ],
)
async def test_every_end_of_a_conversation_is_a_cause(outcome: Outcome, cause: str) -> None:
    alone = Subject("node1", 5678, "node1:5678", who=KIND_BY_OUTCOME.get(outcome, "unknown"))
    (found,) = await examine(
        Observations(Machine(), [replace(alone, talk=ProbeResult(outcome, "so it said"))])
    )
    assert found.cause == cause
    fine = replace(alone, who="unknown", talk=ProbeResult("fine"))
    assert await examine(Observations(Machine(), [fine])) == []


@pytest.mark.parametrize("reason", ["", "the tunnel to pod trainer-0 is being opened"])
async def test_what_is_under_way_is_no_cause(reason: str) -> None:
    assert await examine(Observations(Machine(), [subject(reason, "connecting")])) == []


async def test_a_thousand_ranks_with_one_cause_are_one_cause() -> None:
    subjects = [subject(f"nothing listens on node1:{n} yet", number=n) for n in range(1000)]
    (found,) = await examine(Observations(Machine(), subjects))
    assert found.ranks == "0-999"
    assert found.where == "node1:5678-6677"
    assert found.evidence[-1] == "and 994 more like these"
