"""Warnings about time limits; and a rank's report of them may hold anything."""

from __future__ import annotations

import pytest

from dap_mux.pure.insight.timeouts import (
    Collective,
    TimeoutReport,
    duration,
    extension,
    read_report,
    timeout_warnings,
)

DAY = 24 * 3600.0


def ranks(*told: TimeoutReport) -> dict[tuple[str, int], TimeoutReport]:
    """Ranks 0, 1, … of the default group."""
    return {("job", number): one for number, one in enumerate(told)}


def texts(*told: TimeoutReport) -> list[str]:
    return [warning.text for warning in timeout_warnings(ranks(*told), "job")]


def in_all_reduce(
    limit: float | None, age: float | None, *, elastic: bool = False
) -> TimeoutReport:
    return TimeoutReport(waiting=[Collective("all_reduce", limit, age)], elastic=elastic)


def test_who_waits_is_told_with_the_least_time_left() -> None:
    assert texts(in_all_reduce(1800, 30), TimeoutReport(), in_all_reduce(1800, 90)) == [
        (
            "ranks 0,2 wait in all_reduce, whose timeout of 30 min can no longer be raised: it "
            "fails in 28 min unless the stopped ranks run on"
        )
    ]
    assert texts(TimeoutReport(), in_all_reduce(20, 12, elastic=True)) == [
        (
            "rank 1 waits in all_reduce, whose timeout of 20 s can no longer be raised: it "
            "fails in 8 s unless the stopped ranks run on, and torchrun then ends all ranks"
        )
    ]


def test_each_collective_is_told_of() -> None:
    first, second = in_all_reduce(600, 5), TimeoutReport(waiting=[Collective("barrier", 600, 7)])
    assert [text.partition(",")[0] for text in texts(first, second)] == [
        "rank 0 waits in all_reduce",
        "rank 1 waits in barrier",
    ]


@pytest.mark.parametrize(("limit", "age"), [(DAY, 3000), (1800, 0.2)])
def test_what_has_all_the_time_or_has_just_begun_threatens_nobody(limit: float, age: float) -> None:
    assert texts(in_all_reduce(limit, age)) == []


def test_an_unknown_clock_is_said_to_be_unknown() -> None:
    (warning,) = timeout_warnings(ranks(in_all_reduce(None, None)), "job")
    assert "torch does not say when it will fail" in warning.text
    assert (warning.left, warning.urgent) == (None, False)


def test_the_time_of_the_scheduler() -> None:
    job = TimeoutReport(job="77", left=3 * 3600 + 60)
    (warning,) = timeout_warnings(ranks(job, job), "job")
    assert warning.text == (
        "SLURM's time limit of job 77 keeps running while ranks are paused: "
        "it ends the job in 3 h 1 min"
    )
    assert not warning.urgent
    (warning,) = timeout_warnings(ranks(TimeoutReport(), TimeoutReport(job="77", left=-5)), "job")
    assert warning.text.startswith("SLURM's time limit of job 77 (on rank 1) keeps running")
    assert warning.urgent
    (warning,) = timeout_warnings(ranks(TimeoutReport(job="77")), "job")
    assert warning.text.endswith("; to see the time left: squeue -h -j 77 -o %L")
    assert not warning.urgent


def test_what_was_put_up_and_what_could_not_be() -> None:
    told = ranks(
        TimeoutReport(before=[600, 1800]),
        TimeoutReport(before=[1800]),
        TimeoutReport(problem="no such name"),
    )
    assert extension(told, "job") == (
        "while ranks are stopped, torch's timeouts (10 min, 30 min) are raised to 24 h on ranks "
        "0-1, until all ranks run on"
    )
    assert texts(*told.values()) == ["torch's timeouts cannot be raised on rank 2: no such name"]
    assert extension(ranks(TimeoutReport()), "job") == ""


def test_durations() -> None:
    shown = [duration(seconds) for seconds in (-1, 0, 119.9, 120, 3599, 3600, 7260, DAY)]
    assert shown == ["0 s", "0 s", "119 s", "2 min", "59 min", "1 h", "2 h 1 min", "24 h"]


@pytest.mark.parametrize("said", ["", "[]", '{"before": "x"}', '{"waiting": [[1]]}', None])
def test_nonsense(said: object) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_report(said)


def test_keys_of_a_later_release_are_passed_over() -> None:
    assert read_report('{"before": [], "later": 1}') == TimeoutReport()
