"""A rank's bytes are hostile too: whatever its messages hold, every client request is answered."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import rounds
from tests.support.scripted.interleaving_actions import ACTIONS
from tests.support.scripted.interleaving_fuzz import Storm

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "breakpoints id threads threadId stackFrames source path line reason name output "
                "category variablesReference capabilities sockets internal verified body".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
STEP = st.integers(min_value=0, max_value=len(ACTIONS) * 256 - 1)
Spoiled = tuple[bool, object]
# Half of the steps come after a message is spoiled: inside of its body or not, and with what.
SPOILED = st.none() | st.tuples(st.booleans(), JSON)


def spoil(storm: Storm, body: object, *, inside: bool) -> None:
    """Replace the body of the next message of some rank, or one field within it."""
    wire = next((wire for wire in storm.wires.values() if wire.rank.outbox), None)
    if wire is None:
        return
    message = dict(wire.rank.outbox[0])
    known = message.get("body")
    if inside and isinstance(known, dict) and known:
        message["body"] = {**known, min(known): body}
    else:
        message["body"] = body
    wire.rank.outbox[0] = message


@pytest.mark.slow
@pytest.mark.timeout(300)
@settings(max_examples=rounds(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(STEP, SPOILED), min_size=30, max_size=120))
def test_nonsense_from_ranks_leaves_nobody_without_an_answer(
    steps: list[tuple[int, Spoiled | None]],
) -> None:
    storm = Storm(2, honest=False)
    for opening in (storm.guest_comes, *[storm.connect] * 2, *[storm.ask_rank] * 4):
        opening(1)
    for step, spoiled in steps:
        if spoiled:
            inside, body = spoiled
            spoil(storm, body, inside=inside)
        action, pick = divmod(step, 256)
        ACTIONS[action](storm, pick)
    storm.calm_down()
    waiting = {guest.number: guest.waiting for guest in storm.guests if not guest.closed}
    assert not any(waiting.values()), waiting
