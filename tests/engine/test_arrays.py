"""`array`: what an editor is told of tensors, and which ranks are asked for it."""

from __future__ import annotations

import json
from array import array
from base64 import b64decode, b64encode
from typing import Any

import pytest

from tests.engine.conftest import Play
from tests.support.fake_rank.injected_calls import injected_call
from tests.support.scripted.playbook import Playbook


def packed(*numbers: float) -> str:
    """Numbers as the cells of an answer."""
    return b64encode(array("f", numbers).tobytes()).decode()


def part(*numbers: float, row: int = 0, column: int = 0, **more: Any) -> dict[str, Any]:
    """A part with one row of cells, one element each."""
    statistics = {"min": 1.0, "max": 2.0, "mean": 1.5, "nan": 0, "inf": 0, "count": len(numbers)}
    return {
        "row": row,
        "column": column,
        "height": 1,
        "width": len(numbers),
        "grid": [1, len(numbers)],
        "mean": packed(*numbers),
        "max": "",
        "nan": "",
        "statistics": statistics,
        "histogram": [0, 1, 1, 0],
        "ends": [0.0, 1.0],
        "complete": True,
        **more,
    }


def has(book: Playbook, rank: int, *numbers: float, **more: Any) -> None:
    """This rank has an array `w` of one row, all of it."""
    told = {
        "name": "ndarray",
        "dtype": "float32",
        "shape": [1, len(numbers)],
        "local": [1, len(numbers)],
        "offset": [0, 0],
        "part": part(*numbers),
    }
    book.rank(rank).data.arrays["w"] = {**told, **more}


def shards(book: Playbook) -> None:
    """A tensor of four columns over ranks 0 and 1, and the same again over 2 and 3."""
    for rank in range(4):
        column = 2 * (rank % 2)
        spread: dict[str, Any] = {"placements": "Shard(dim=1), Replicate()", "shape": [1, 4]}
        spread |= {"offset": [0, column], "part": part(rank, rank, column=column)}
        has(book, rank, rank, rank, **spread)


def asked(book: Playbook, rank: int) -> list[bool]:
    """Of each question to a rank whether it was for cells."""
    calls = map(injected_call, book.rank(rank).data.evaluated)
    return [call.values[1]["cells"] for call in calls if call and call.module == "array_view"]


def mean_of(part: dict[str, Any]) -> list[float]:
    """The numbers of a part."""
    return array("f", b64decode(part["mean"])).tolist()


def test_the_rank_in_focus(play: Play) -> None:
    """One question to one rank, whatever others have."""
    book, client = play.stopped(3)
    has(book, 0, 1, 2, 3)
    body = client.ask("array", expression="w").body
    about = {"name": "ndarray", "dtype": "float32", "shape": [1, 3]}
    assert {**about, "rows": 0, "columns": 1, "extent": [1, 3]}.items() <= body.items()
    (only,) = body["parts"]
    assert only["ranks"] == "0"
    assert mean_of(only) == [1, 2, 3]
    assert [asked(book, rank) for rank in range(3)] == [[True], [], []]


def test_ranks_as_rows(play: Play) -> None:
    """`$rank`: each rank is a row; one that has none is an error, and its row is left out."""
    book, client = play.stopped(3)
    has(book, 0, 1, 2)
    has(book, 2, 5, 6)
    body = client.ask("array", expression="w", ranks="all", rows="$rank").body
    assert [(one["ranks"], one["row"], mean_of(one)) for one in body["parts"]] == [
        ("0", 0, [1, 2]),
        ("2", 1, [5, 6]),
    ]
    assert body["extent"] == [2, 2]
    assert body["errors"] == [{"ranks": "1", "message": "NameError: name 'w' is not defined"}]
    assert [asked(book, rank) for rank in range(3)] == [[True]] * 3


def test_a_tensor_that_is_spread_is_laid_out(play: Play) -> None:
    """Each place comes from one rank; who else has it is told."""
    book, client = play.stopped(4)
    shards(book)
    body = client.ask("array", expression="w", ranks="all").body
    assert [(one["ranks"], one["column"], mean_of(one)) for one in body["parts"]] == [
        ("0,2", 0, [0, 0]),
        ("1,3", 2, [1, 1]),
    ]
    assert body["extent"] == [1, 4]
    assert [asked(book, rank) for rank in range(4)] == [[False, True]] * 2 + [[False]] * 2


def test_the_focus_is_on_another_copy(rehearse: Play) -> None:
    """Its own part is shown, and places stay in their order."""
    book, client = rehearse.stopped(4)
    shards(book)
    client.ask("focus", rank=2)
    body = client.ask("array", expression="w", ranks="all").body
    assert [(one["ranks"], mean_of(one)) for one in body["parts"]] == [
        ("0,2", [2, 2]),
        ("1,3", [1, 1]),
    ]


def test_a_copy_in_each_rank_is_sent_once(rehearse: Play) -> None:
    """64 copies of one picture would be 64 MB; shapes that differ are told."""
    book, client = rehearse.stopped(3)
    for rank in range(3):
        has(book, rank, *range(1, 4 + rank // 2))
    body = client.ask("array", expression="w", ranks="all").body
    assert [one["ranks"] for one in body["parts"]] == ["0"]
    assert [one["ranks"] for one in body["shapes"]] == ["0-1", "2"]
    assert body["shapes"][1]["message"] == "ndarray [1, 4] float32"


def test_a_part_without_the_index_that_is_shown_is_not_asked(rehearse: Play) -> None:
    """With ranks 0 and 1 as columns, of dimension 1 only index 3 is wanted."""
    book, client = rehearse.stopped(4)
    shards(book)
    body = client.ask("array", expression="w", ranks="all", rows=1, columns=0).body
    assert [one["ranks"] for one in body["parts"]] == ["0,2", "1,3"]
    shape = {"shape": [1, 4, 1], "local": [1, 2, 1], "placements": "Shard(dim=1)"}
    for rank in range(2):
        has(book, rank, rank, **shape, offset=[0, 2 * rank, 0])
    body = client.ask("array", expression="w", ranks="0-1", rows=0, columns=2, at=[0, 3, 0]).body
    assert [one["ranks"] for one in body["parts"]] == ["1"]


@pytest.mark.parametrize(
    "told",
    [
        "no JSON",
        "[1]",
        json.dumps({"shape": [1], "local": [1], "offset": [0]}),
        json.dumps({"shape": [-1], "local": [1], "offset": [0], "part": part(1)}),
        json.dumps({"shape": [1] * 65, "local": [1] * 65, "offset": [0] * 65, "part": part(1)}),
        json.dumps({"shape": [1], "local": [], "offset": [0], "part": part(1)}),
        json.dumps({"shape": [1], "local": [1], "offset": [0], "part": part(1, grid=[1, 2])}),
        json.dumps({"shape": [1], "local": [1], "offset": [0], "part": part(1, grid=[9999, 9])}),
        json.dumps({"shape": [1], "local": [1], "offset": [0], "part": part(1, mean="<b>!")}),
        json.dumps({"name": "x" * 9999, "problem": ""}),
    ],
)
def test_a_hostile_rank(rehearse: Play, told: str) -> None:
    """What is malformed is an error of that rank; others are shown."""
    book, client = rehearse.stopped(2)
    has(book, 1, 1)
    book.rank(0).data.arrays["w"] = told
    body = client.ask("array", expression="w", ranks="all", rows="$rank").body
    assert [one["ranks"] for one in body["parts"]] == ["1"]
    (error,) = body["errors"]
    assert error["ranks"] == "0"
    assert error["message"].startswith("malformed answer: ")


def test_a_silent_rank_is_missing(rehearse: Play) -> None:
    """Others are shown when the time is up."""
    book, client = rehearse.stopped(2)
    has(book, 0, 1)
    book.rank(1).silent = {"evaluate"}
    answer = client.ask("array", expression="w", ranks="all", rows="$rank", timeout=1)
    book.wait(1.1)
    assert answer.body["missing"] == "1"
    assert len(answer.body["parts"]) == 1


def test_what_is_refused(rehearse: Play) -> None:
    """A running rank has no frame, and a statement has no value."""
    book, client = rehearse.attached(2)
    assert "no rank is stopped" in client.ask("array", expression="w").refusal
    (error,) = client.ask("array", expression="w", ranks="1").body["errors"]
    assert error["message"] == "it is running: pause it to see its arrays"
    assert "one expression" in client.ask("array", expression="w = 1", ranks="1").refusal
    assert "rows" in client.ask("array", expression="w", rows=-1).refusal
    assert "at" in client.ask("array", expression="w", at=[-2]).refusal
    assert asked(book, 1) == []
