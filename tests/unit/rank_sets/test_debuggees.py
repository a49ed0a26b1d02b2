"""Ranks and workers: their order, and how they are written."""

from __future__ import annotations

import pytest

from dap_mux.rank_sets.debuggees import DebuggeeId, label, rank_of, worker_of


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
