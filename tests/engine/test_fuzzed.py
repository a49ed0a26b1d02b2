"""Sessions in which ranks and clients say what they like; what `make fuzz` has found is kept."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import rounds
from tests.fuzz.drawn import FRAME, MOST_STEPS, step
from tests.fuzz.world import Said, attempt
from tests.support.scripted.interleaving_actions import ACTIONS
from tests.support.scripted.interleaving_fuzz import Storm

# The rank refuses what was asked of it, and does not say why.
SILENT_REFUSAL = {"seq": 0, "type": "response", "success": False, "message": "", "body": None}
NOT_INITIALIZED = {**SILENT_REFUSAL, "request_seq": 1, "command": "initialize"}
NOT_EVALUATED = {**SILENT_REFUSAL, "request_seq": 3, "command": "evaluate"}
HEAR_RANK = Said(ACTIONS.index(Storm.hear_rank) * 256)
STEPS = st.lists(st.binary(max_size=FRAME).map(step), min_size=20, max_size=MOST_STEPS)


@pytest.mark.slow
@settings(max_examples=rounds(60), deadline=None)
@example(steps=[Said(0, NOT_INITIALIZED, by_rank=True)])
@example(steps=[*[HEAR_RANK] * 5, Said(0, NOT_EVALUATED, by_rank=True)])
@given(steps=STEPS)
def test_nothing_said_is_a_defect(steps: list[Said]) -> None:
    attempt(steps)
