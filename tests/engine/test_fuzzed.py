"""Sessions in which ranks and clients say what they like; what `make fuzz` has found is kept."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings

from tests.fuzz.strategies import STEPS
from tests.fuzz.world import Said, World

# The rank refuses to be initialized, and does not say why.
SILENT_REFUSAL = {
    "seq": 0,
    "type": "response",
    "request_seq": 1,
    "success": False,
    "command": "initialize",
    "message": "",
    "body": None,
}


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@example(steps=[Said(0), Said(0, SILENT_REFUSAL, by_rank=True)])
@given(steps=STEPS)
def test_nothing_said_is_a_defect(steps: list[Said]) -> None:
    World().run(steps)
