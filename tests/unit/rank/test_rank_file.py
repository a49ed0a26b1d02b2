"""Files of ranks that are taken home: whole, cut, foreign and hostile."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from dap_mux.rank.take import rank_file
from dap_mux.rank.take.data_files import DataFiles, changes
from dap_mux.rank.take.rank_file import (
    BLOCK,
    CALL,
    FILE,
    HEAD,
    MAGIC,
    ORDER,
    PACKED,
    RECEIVED,
    STORE,
    Buffer,
    NotARankFile,
    RankFile,
    Writer,
    joined,
    place_of,
)

HEADER = {
    "rank": 2,
    "world": 4,
    "argv": ["python"],
    "program": ["train.py"],
    "cwd": "/",
    "executable": "python",
    "digest": "",
    "environment": {},
    "random": {},
}
OF_MPI = ["Allreduce", "irecv", "Split"]
PARTS = [b"", bytes(9000), b"a short one"]


def call(order: int, **others: Any) -> bytes:
    """A call of its block."""
    said = {"order": order, "number": order, "step": 0, "group": "0", "operator": "allreduce_"}
    more = {"kind": "all_reduce", "place": "train.py:3 main", "sent": [], "outputs": []}
    return json.dumps({**said, **more, "main": True, **others}).encode()


def written(path: Path, *blocks: tuple[int, bytes | list[Buffer]]) -> str:
    """Write a file with a head and these blocks; return its name."""
    writer = Writer(str(path), HEADER)
    for block in blocks:
        what, data = block
        writer.add(what, *(data if isinstance(data, list) else [data]))
    assert writer.bytes == path.stat().st_size
    return str(path)


def test_what_is_written_is_read_in_the_order_of_calls(tmp_path: Path) -> None:
    blocks: list[tuple[int, bytes | list[Buffer]]] = [
        (CALL, call(1)),
        (CALL, call(2)),
        (RECEIVED, joined(2, PARTS)),
        (CALL, call(3)),
    ]
    name = written(tmp_path / "2.rank", *blocks, (RECEIVED, joined(1, [])))
    assert Path(name).stat().st_mode & 0o777 == 0o600
    assert Path(name).stat().st_size < 2000, "zeros are packed"
    file = RankFile(name)
    assert (file.head["rank"], file.cut) == (2, False)
    assert [taken.call["number"] for taken in file.calls] == [1, 2, 3]
    assert [file.received(taken, None) for taken in file.calls] == [[], PARTS, []]
    assert [taken.block is None for taken in file.calls] == [False, False, True]


def test_what_stores_answered_is_read_in_order(tmp_path: Path) -> None:
    said = [{"method": "get", "key": "'word'", "answer": {"bytes": "6869"}}] * 2
    file = RankFile(
        written(tmp_path / "2.rank", *((STORE, json.dumps(one).encode()) for one in said))
    )
    assert (file.stores, file.calls) == (said, [])


def test_data_files_that_are_gone_or_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    heard = DataFiles(digests=True)
    for name in ("a.csv", "b.csv", "c.csv"):
        Path(name).write_text("12", "utf-8")
        Path(name).read_text("utf-8")
    files = [*heard.new()]
    assert [(each["path"], each["size"]) for each in files] == [(f"{n}.csv", 2) for n in "abc"]
    assert ([*heard.new()], changes(files)) == ([], [])
    Path("a.csv").unlink()
    Path("b.csv").write_text("34", "utf-8")
    gone, other = changes(files)
    assert gone == "a.csv, which the rank has read, is not here"
    assert other == "b.csv is not the file that the rank has read"
    assert changes([{**each, "digest": ""} for each in files]) == [gone], "of the same size"
    blocks = [(FILE, json.dumps(each).encode()) for each in files]
    assert RankFile(written(tmp_path / "2.rank", *blocks)).files == files


def test_a_file_and_a_folder_that_go_meanwhile_harm_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = DataFiles(digests=True)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    Path("a.csv").write_text("12", "utf-8")
    Path("a.csv").read_text("utf-8")
    Path("a.csv").unlink()
    (tmp_path / "gone").rmdir()
    assert [*heard.new()] == []


def test_calls_of_mpi4py_have_its_methods(tmp_path: Path) -> None:
    calls = [call(at, operator=each, carrier="mpi4py.MPI") for at, each in enumerate(OF_MPI)]
    file = RankFile(written(tmp_path / "2.rank", *((CALL, each) for each in calls)))
    assert [taken.call["operator"] for taken in file.calls] == OF_MPI


@pytest.mark.parametrize("lost", range(1, 60, 7))
def test_a_file_that_is_cut_has_the_calls_before(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "2.rank"
    written(path, (CALL, call(1)), (RECEIVED, joined(1, [b"1234"])), (CALL, call(2)))
    path.write_bytes(path.read_bytes()[:-lost])
    file = RankFile(str(path))
    assert (file.cut, len(file.calls), file.received(file.calls[0], None)) == (True, 1, [b"1234"])


def sums(data: bytes) -> bytes:
    """A hash."""
    return sum(data).to_bytes(8, "big")


def test_large_parts_have_hashes_that_are_looked_at_when_they_are_read(tmp_path: Path) -> None:
    path, parts = tmp_path / "2.rank", [bytes(range(256)) * 400, b"abc"]
    block = joined(1, parts, [*map(sums, parts)])
    written(path, (CALL, call(1)), (RECEIVED, block), (CALL, call(2)))
    file = RankFile(str(path))
    assert (file.cut, len(file.calls)) == (False, 2)
    assert file.received(file.calls[0], sums) == parts
    with pytest.raises(NotARankFile, match="what call 1 has received is damaged"):
        file.received(file.calls[0], None)
    path.write_bytes(path.read_bytes().replace(b"abc", b"abd"))
    with pytest.raises(NotARankFile, match="what call 1 has received is damaged"):
        file.received(file.calls[0], sums)
    assert RankFile(str(path)).calls == file.calls
    path.write_bytes(path.read_bytes()[: -len(call(2)) - BLOCK.size - 3])
    assert [each.block for each in RankFile(str(path)).calls] == [None], "it is cut in the values"


def packed(data: bytes, what: int = RECEIVED | PACKED) -> bytes:
    """A block as it stands in a file."""
    return BLOCK.pack(len(data), len(data), zlib.crc32(data), what) + data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "was not written by"),
        (b"PK\3\4 a zip", "was not written by"),
        (MAGIC, "has no head"),
        (MAGIC + packed(b"{}", HEAD), "a block has no rank"),
        (MAGIC + packed(b"[1]", HEAD), "a block has no rank"),
        (MAGIC + packed(b"\xff", HEAD), "a block is no JSON"),
        (MAGIC + packed(b"no zlib", HEAD | PACKED), "cannot be unpacked"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "2.rank"
    path.write_bytes(data)
    with pytest.raises(NotARankFile, match=message):
        RankFile(str(path))


def test_a_hostile_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "2.rank"
    with pytest.raises(NotARankFile, match="there is no operator 'system'"):
        RankFile(written(path, (CALL, call(1, operator="system"))))
    with pytest.raises(NotARankFile, match="there is no operator 'allreduce_'"):
        RankFile(written(path, (CALL, call(1, carrier="mpi4py.MPI"))))
    name = written(path, (CALL, call(1)), (RECEIVED, ORDER.pack(1 << 30, 0, 1)))
    file = RankFile(name)
    with pytest.raises(NotARankFile, match="has not 1073741824 parts"):
        file.received(file.calls[0], None)
    monkeypatch.setattr(rank_file, "MAX_PACKED", 1 << 20)
    bomb = zlib.compress(bytes(1 << 22))
    path.write_bytes(path.read_bytes() + packed(bomb))
    with pytest.raises(NotARankFile, match="unpacks to more than"):
        RankFile(name)


@pytest.mark.parametrize(
    ("text", "place"),
    [("2", "step 2"), ("step:0", "step 0"), ("call:3", "call 3"), ("last", "call 3")],
)
def test_places_where_a_replay_stops(tmp_path: Path, text: str, place: str) -> None:
    blocks = [(CALL, call(order, step=order - 1)) for order in (1, 2, 3)]
    assert str(place_of(text, RankFile(written(tmp_path / "2.rank", *blocks)))) == place


@pytest.mark.parametrize("text", ["3", "call:0", "call:4", "train.py:3", "-1", ""])
def test_places_that_a_record_has_not(tmp_path: Path, text: str) -> None:
    blocks = [(CALL, call(order, step=order - 1)) for order in (1, 2, 3)]
    file = RankFile(written(tmp_path / "2.rank", *blocks))
    with pytest.raises(ValueError, match=r"calls 1 to 3, in steps 0 to 2|must be a step, call:N"):
        place_of(text, file)
    with pytest.raises(ValueError, match=r"has no calls|must be"):
        place_of(text, RankFile(written(tmp_path / "none.rank")))
