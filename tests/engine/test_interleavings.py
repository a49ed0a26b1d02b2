"""Whatever the order of replies, stops, deaths, deadlines, comings and goings: nobody is forgotten.

One response for each request, valid messages only, no rank wedged, and no rank left stopped when
nobody is there to continue it. And an editor shows in the end what is so.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import rounds
from tests.support.scripted.editor_storm import ROUGH_ACTIONS, VSCODE, EditorStorm
from tests.support.scripted.interleaving_actions import ACTIONS
from tests.support.scripted.interleaving_fuzz import Storm

RUNS = int(os.environ.get("DAP_MUX_STORMS", rounds(2000)))
# A drawn number is an action and a choice; the opening brings a client and a connection.
STEP = st.integers(min_value=0, max_value=len(ACTIONS) * 256 - 1)
OPENING = [Storm.guest_comes, *[Storm.connect] * 4, *[Storm.ask_rank, Storm.hear_rank] * 12]


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=RUNS, deadline=None, suppress_health_check=list(HealthCheck))
@given(ranks=st.integers(min_value=1, max_value=4), steps=st.lists(STEP, min_size=40, max_size=200))
def test_any_order_leaves_nobody_without_an_answer(ranks: int, steps: list[int]) -> None:
    storm = Storm(ranks)
    for opening in OPENING:
        opening(storm, 1)
    for step in steps:
        action, pick = divmod(step, 256)
        ACTIONS[action](storm, pick)
    storm.calm_down()
    storm.check()


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=RUNS // 4, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    ranks=st.integers(min_value=1, max_value=4),
    steps=st.lists(
        st.tuples(st.sampled_from(ROUGH_ACTIONS), st.integers(0, 255)), min_size=40, max_size=200
    ),
)
def test_vscode_shows_in_the_end_what_is_so(
    ranks: int, steps: list[tuple[Callable[[EditorStorm, int], None], int]]
) -> None:
    """Its connection is slow too: keys are pressed while stops are under way."""
    storm = EditorStorm(ranks, VSCODE)
    for _ in range(12):
        storm.deliver()
        for opening in (storm.connect, storm.ask_rank, storm.hear_rank):
            opening(1)
    for action, pick in steps:
        action(storm, pick)
    storm.calm_down()
    storm.check()
