"""Ranks to text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_mux.pure.rank_sets import World, fold, parse
from dap_mux.pure.rank_sets.world import DebuggeeId, label, rank_of, worker_of

RANKS = st.sets(st.tuples(st.sampled_from(["job", "eval", "my-job"]), st.integers(0, 40)))


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([0, 1], "0-1"),
        ([7, 2, 0, 1, 3, 2], "0-3,7"),
        ([0, 2, 4], "0,2,4"),
        ([5, 6, 8, 10, 11, 12], "5-6,8,10-12"),
    ],
)
def test_numbers_fold(ranks: list[int], text: str) -> None:
    assert fold(("job", rank) for rank in ranks) == text
    assert fold(("any", rank) for rank in ranks) == text


def test_several_groups_are_named_the_default_first() -> None:
    ranks = [("eval", 0), *(("trainer", rank) for rank in range(4)), ("actor", 2)]
    assert fold(ranks, default_group="trainer") == "trainer:0-3; actor:2; eval:0"
    assert fold(ranks) == "actor:2; eval:0; trainer:0-3"


@given(ranks=RANKS.filter(bool))
def test_fold_parses_back_to_the_same_ranks(ranks: set[tuple[str, int]]) -> None:
    chosen = tuple(sorted(ranks))
    assert parse(fold(ranks)).select(World(chosen, {}, {}, {})) == chosen


@given(ranks=RANKS.filter(bool))
def test_folded_text_is_canonical(ranks: set[tuple[str, int]]) -> None:
    text = fold(ranks)
    assert str(parse(text)) == text.replace(";", " |")


# Ranks and workers: their order, and how they are written.


def test_a_worker_sorts_after_its_rank_and_before_the_next() -> None:
    ids: list[DebuggeeId] = [("job", 1), ("job", 0, 2), ("eval", 0, 1), ("job", 0), ("job", 0, 1)]
    assert sorted(ids) == [("eval", 0, 1), ("job", 0), ("job", 0, 1), ("job", 0, 2), ("job", 1)]


def test_its_parts() -> None:
    assert (rank_of(("job", 3, 1)), worker_of(("job", 3, 1))) == (("job", 3), 1)
    assert (rank_of(("job", 3)), worker_of(("job", 3))) == (("job", 3), None)


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([], ""),
        ([("job", 0), ("job", 2), ("job", 1)], "0-2"),
        ([("job", 3, 1)], "3/1"),
        ([("job", 3, 2), ("job", 3, 1), ("job", 3, 4)], "3/1-2,4"),
        ([("job", 0, 1), ("job", 1, 1), ("job", 2, 1)], "0-2/1"),
        ([("job", 0), ("job", 1), ("job", 1, 1), ("job", 1, 2)], "0-1, 1/1-2"),
        ([("eval", 0, 1), ("job", 0, 1)], "eval:0/1, job:0/1"),
    ],
)
def test_written_folded(ids: list[DebuggeeId], text: str) -> None:
    assert label(ids) == text
