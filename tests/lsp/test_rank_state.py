"""What is known of ranks: where they stand, who is elsewhere, and when that is news."""

from __future__ import annotations

from typing import Any

from dap_mux.frontends.lsp import features as rendering
from dap_mux.frontends.lsp.session_follower import RankState


def row(rank: int, line: int | None = None, **more: Any) -> dict[str, Any]:
    """A row of `list`: of a rank that stands at a line, or runs."""
    state = "running" if line is None else "stopped"
    where = {"path": "/job/train.py" if line else None, "line": line}
    rest = {
        "reason": "step" if line else None,
        "worker": None,
        "pid": 1,
        "group": "job",
        "coords": None,
        "threadId": rank + 1,
    }
    return {"rank": rank, "state": state, "host": "h", **where, **rest, **more}


def drawn(*rows: dict[str, Any]) -> RankState:
    picture = RankState()
    picture.replace(rows)
    return picture


def labels(picture: RankState) -> dict[int, str]:
    return {one.line: rendering.mark(one) for one in picture.stopped_in("/job/train.py")}


def test_who_stands_where() -> None:
    picture = drawn(*(row(rank, 7 if rank != 2 else None) for rank in range(4)), row(4, 9))
    assert labels(picture) == {7: "● 0-1,3", 9: "● 4"}
    picture.update([row(3, 9)])
    assert labels(picture) == {7: "● 0-1", 9: "● 3-4"}
    first, last = picture.stopped_in("/job/train.py")
    assert picture.ranks_elsewhere(first) == "2-4"
    assert picture.ranks_elsewhere(last) == "0-2"
    assert picture.stopped_in("/job/other.py") == []
    assert rendering.why(first) == "stopped here (step): ranks 0-1"


def test_there_and_back_is_news_twice() -> None:
    picture = drawn(row(0, 7))
    before = picture.revision
    picture.update([row(0)])
    picture.update([row(0, 7)])
    assert picture.revision == before + 2
    picture.update([row(0, 7)])
    assert picture.revision == before + 2


def test_groups_are_named_where_there_are_several() -> None:
    picture = drawn(row(0, 7, group="eval"), row(0, 7, group="trainer"), row(1, group="trainer"))
    [one] = picture.stopped_in("/job/train.py")
    assert rendering.mark(one) == "● eval:0; trainer:0"
    assert picture.ranks_elsewhere(one) == "trainer:1"
    assert picture.kept.fold([("eval", 0)]) == "eval:0"


def test_a_worker_stands_beside_its_rank_and_is_gone_with_its_end() -> None:
    picture = drawn(row(0), row(0, 7, worker=1))
    assert labels(picture) == {7: "● 0/1"}
    picture.update([row(0, None, worker=1, state="exited")])
    assert labels(picture) == {}


def test_many_pieces_are_counted() -> None:
    mark = labels(drawn(*(row(rank, 7) for rank in range(0, 200, 2))))[7]
    assert mark.startswith("● 0,2,4,")
    assert mark.endswith(",… (100)")
    assert len(mark) < 55


def value(ranks: str, text: str, *, outlier: bool = False) -> dict[str, Any]:
    """An entry of its `values`."""
    return {"ranks": ranks, "value": text, "outlier": outlier}


def compared(**more: Any) -> dict[str, Any]:
    """An answer of `compare`."""
    rest: dict[str, Any] = {"statistics": None, "outliers": "", "errors": [], "missing": ""}
    return {"values": [value("0-1", "1")], **rest, **more}


def test_values_of_a_hover() -> None:
    assert rendering.values("x", compared(values=[]), markdown=True) is None
    numbers = {"min": 1.0, "max": 2.5, "mean": 1.5, "std": 0.25, "nan": 1, "inf": 0}
    body = compared(
        values=[value(str(rank), f"{rank}\n", outlier=rank == 15) for rank in range(20)],
        statistics=numbers,
        errors=[{"ranks": "30", "message": "NameError"}],
        missing="31",
    )
    said = rendering.values("x", body, markdown=False)
    assert said is not None
    lines = said.splitlines()
    assert lines[0] == "x"
    assert lines[1:3] == ["  ⚠ {15}: 15\\n", "  {0}: 0\\n"], "a value is one line"
    assert lines[13:] == [
        "  … and 8 more values",
        "min 1 · max 2.5 · mean 1.5 · std 0.25 · nan 1",
        "  {30}: NameError",
        "no response from 31",
    ]
