"""Who has which number while ranks come and go."""

from __future__ import annotations

from dap_mux.cluster.records import RankRecord
from dap_mux.session.rank_sources import RankRegistry


def record(host: str, rank: int | None = None, group: str = "job") -> RankRecord:
    return RankRecord(host=host, port=1, rank=rank, group=group)


def numbers(records: list[RankRecord]) -> dict[str, int | None]:
    return {one.host: one.rank for one in records}


def test_a_rank_keeps_its_number_whoever_else_is_there() -> None:
    roll = RankRegistry()
    roll.enter("word", [record("a", 0), record("b", 1), record("c", 2)])
    found, problems = roll.update("word", [record("d"), record("c"), record("b")])
    assert (numbers(found), problems) == ({"b": 1, "c": 2, "d": 0}, [])


def test_a_newcomer_takes_no_number_of_another_word() -> None:
    roll = RankRegistry()
    roll.enter("plain", [record("a", 0), record("b", 1)])
    assert numbers(roll.update("word", [record("c"), record("d", 3), record("e")])[0]) == {
        "c": 2,
        "d": 3,
        "e": 4,
    }


def test_a_number_that_two_give_names_both() -> None:
    roll = RankRegistry()
    roll.enter("plain", [record("a", 0)])
    found, problems = roll.update("word", [record("b", 0), record("c", 1), record("d", 1)])
    assert numbers(found) == {"c": 1}
    assert problems == [
        "duplicate rank 0 of group job: a:1 and b:1; the second is ignored",
        "duplicate rank 1 of group job: c:1 and d:1; the second is ignored",
    ]


def test_a_rank_that_moved_is_no_duplicate() -> None:
    roll = RankRegistry()
    roll.enter("word", [record("old", 1)])
    assert roll.update("word", [record("new", 1)]) == ([record("new", 1)], [])


def test_groups_count_for_themselves() -> None:
    roll = RankRegistry()
    roll.enter("plain", [record("a", 0)])
    assert numbers(roll.update("word", [record("b", group="eval")])[0]) == {"b": 0}
