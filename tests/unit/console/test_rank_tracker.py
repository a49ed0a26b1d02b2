"""What is news, and how ranks are named."""

from __future__ import annotations

from typing import Any

from dap_mux.frontends.console.session_client import RankTracker, stopped_rows
from tests.support.clients.scripted_server import list_row


def stopped(rank: int, line: int = 41, **known: Any) -> dict[str, Any]:
    """A row of a rank that has stopped."""
    place = {"path": "/src/train.py", "line": line, "reason": "breakpoint"}
    return list_row(rank, "stopped", **{**place, **known})


def news(tracker: RankTracker, *rows: dict[str, Any]) -> list[str]:
    return tracker.announcements(tracker.update(rows))


def test_equal_news_of_several_ranks_is_one_line() -> None:
    tracker = RankTracker()
    assert news(tracker, *(list_row(rank, "running") for rank in range(5))) == []
    moved = [*(stopped(rank) for rank in (0, 1, 2)), stopped(4, 7, reason="step")]
    assert news(tracker, *moved) == [
        "ranks 0-2 stopped at train.py:41 (breakpoint)",
        "rank 4 stopped at train.py:7 (step)",
    ]
    assert news(tracker, *moved) == [], "the same again is no news"
    assert tracker.counts() == "4 stopped, 1 running"


def test_a_stop_is_told_when_its_place_is_known_and_after_each_run() -> None:
    tracker = RankTracker()
    assert news(tracker, stopped(3, reason=None, path=None)) == []
    assert news(tracker, stopped(3)) == ["rank 3 stopped at train.py:41 (breakpoint)"]
    assert news(tracker, list_row(3, "running")) == []
    assert news(tracker, stopped(3)) == ["rank 3 stopped at train.py:41 (breakpoint)"]


def test_ends() -> None:
    tracker = RankTracker()
    gone = [
        list_row(0, "exited", exitCode=3),
        list_row(1, "exited"),
        list_row(2, "lost", reason="no answer"),
    ]
    assert news(tracker, *gone) == [
        "rank 0 ended with exit code 3",
        "rank 1 ended",
        "rank 2 lost: no answer",
    ]


def test_workers_stop_like_ranks_and_end_unnoticed() -> None:
    tracker = RankTracker()
    assert news(tracker, list_row(3, "running"), list_row(3, "running", worker=1), stopped(2)) == [
        "rank 2 stopped at train.py:41 (breakpoint)",
    ]
    stops = [stopped(3, worker=1), stopped(3, worker=2)]
    assert news(tracker, *stops) == ["ranks 3/1-2 stopped at train.py:41 (breakpoint)"]
    assert tracker.rows["job", 3]["state"] == "running"
    assert tracker.counts() == "3 stopped, 1 running"
    assert news(tracker, list_row(3, "exited", worker=1)) == []
    assert tracker.counts() == "2 stopped, 1 running"


def test_groups_are_named_where_there_are_several() -> None:
    tracker = RankTracker()
    tracker.update([list_row(0, group="trainer"), list_row(0, group="eval")])
    assert tracker.groups == ["eval", "trainer"]
    assert tracker.fold([("eval", 0)]) == "eval:0"
    assert tracker.name([("eval", 0), ("trainer", 0)]) == "ranks eval:0; trainer:0"


def test_what_is_stopped_are_ranks_and_their_workers() -> None:
    one, its_worker = stopped(1), list_row(1, "running", worker=1)
    other, other_worker = list_row(2, "running"), stopped(2, worker=1)
    trainer = stopped(2, group="trainer")
    assert stopped_rows([one, its_worker, other, other_worker, trainer]) == [
        one,
        its_worker,
        trainer,
    ]
