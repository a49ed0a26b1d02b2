"""Endpoints as a user types them, and the ranks file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dap_mux.cluster import endpoints
from dap_mux.cluster.endpoints import RanksFile, number, read_endpoint
from dap_mux.cluster.records import RankRecord, read_ranks_file
from dap_mux.pure.endpoint import Traits
from dap_mux.pure.errors import UsageError


def parse_endpoint(word: str) -> list[RankRecord]:
    named = read_endpoint(word)
    found = anyio.run(named.source.discover) if named.source else named.records
    return [replace(one, incarnation="") for one in named.grouped(found)]


def parse_endpoints(words: Iterable[str]) -> list[RankRecord]:
    return number(record for word in words for record in parse_endpoint(word))


def addresses(*words: str) -> list[tuple[str, int | None, str]]:
    return [(one.group, one.rank, one.endpoint) for one in parse_endpoints(words)]


@pytest.mark.parametrize(
    ("word", "endpoints"),
    [
        ("node1:5678", ["node1:5678"]),
        (":5678", ["127.0.0.1:5678"]),
        ("node1:5678-5680", ["node1:5678", "node1:5679", "node1:5680"]),
        ("node1:5678-5678", ["node1:5678"]),
        ("node1:5678+2", ["node1:5678", "node1:5679"]),
        ("[::1]:5678", ["[::1]:5678"]),
        ("[fe80::1%eth0]:5678+2", ["[fe80::1%eth0]:5678", "[fe80::1%eth0]:5679"]),
        ("10.0.0.7:65535", ["10.0.0.7:65535"]),
    ],
)
def test_an_address_names_its_ranks(word: str, endpoints: list[str]) -> None:
    assert [one.endpoint for one in parse_endpoint(word)] == endpoints
    assert [one[1] for one in addresses(word)] == list(range(len(endpoints)))


def test_places_are_counted_across_words_and_within_groups() -> None:
    words = ("a:1-2", "eval=b:1", "c:1", "eval=b:2+2")
    assert addresses(*words) == [
        ("job", 0, "a:1"),
        ("job", 1, "a:2"),
        ("eval", 0, "b:1"),
        ("job", 2, "c:1"),
        ("eval", 1, "b:2"),
        ("eval", 2, "b:3"),
    ]


def test_nothing_named_is_no_rank() -> None:
    assert parse_endpoints([]) == []


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("", "a port is missing"),
        ("node1", "a port is missing"),
        ("node1:", "not an endpoint"),
        ("node1:http", "not an endpoint"),
        ("node1:-1", "not an endpoint"),
        ("node1:5678-", "not an endpoint"),
        ("node1:5678-5680+2", "not an endpoint"),
        ("node1:٥٦٧٨", "not an endpoint"),
        ("[::1:5678", "not an endpoint"),
        ("node1:0", "0 is not a port"),
        ("node1:65536", "65536 is not a port"),
        ("node1:65534+4", "65537 is not a port"),
        ("node1:5681-5678", "5681 to 5678"),
        ("node1:5678+0", "empty range of ports"),
        ("::1:5678", "brackets"),
        ("trainer=monarch:1234", "has no address that lists its procs"),
        ("@nowhere/ranks.json", "cannot read the ranks file nowhere/ranks.json"),
    ],
)
def test_nonsense_is_named(word: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_endpoints([word])
    assert complaint in str(caught.value)
    assert word.lstrip("@") in str(caught.value)


def test_monarch_has_no_endpoint_and_names_what_works() -> None:
    with pytest.raises(
        UsageError, match=r"`dap-mux run -- python JOB.py`.*`dap-mux attach dial:N`"
    ):
        parse_endpoint("monarch:something")


def test_a_duplicate_rank_names_both() -> None:
    first = RankRecord(host="a", port=1, rank=1)
    with pytest.raises(UsageError, match="duplicate rank 1 of group job: a:1 and b:2"):
        number([first, RankRecord(host="b", port=2)])


def test_one_rank_number_in_two_groups_is_fine() -> None:
    assert addresses("a:1", "eval=b:1")[1] == ("eval", 0, "b:1")


def test_an_address_twice_names_both_ranks() -> None:
    with pytest.raises(UsageError, match=r"duplicate endpoint a:2: rank 1 .* and rank 2"):
        parse_endpoints(["a:1-2", "a:2"])


# The ranks file


def ranks_file(folder: Path, content: object) -> str:
    path = folder / "ranks.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return f"@{path}"


def test_a_ranks_file_gives_what_it_holds(tmp_path: Path) -> None:
    full = {
        "group": "trainer",
        "rank": 7,
        "host": "node1",
        "port": 5685,
        "pid": 41,
        "coords": {"dp": 1, "tp": 3},
        "world_size": 8,
        "remoteRoot": "/srv/app",
        "localRoot": "/home/me/app",
        "userThreads": ["*Task-Threads*"],
        "of a later version": True,
    }
    word = ranks_file(tmp_path, [full, {"host": "node2", "port": 1, "rank": None, "pid": None}])
    assert parse_endpoints([word]) == [
        RankRecord(
            group="trainer",
            rank=7,
            host="node1",
            port=5685,
            pid=41,
            coords={"dp": 1, "tp": 3},
            world_size=8,
            remote_root="/srv/app",
            traits=Traits(user_threads=("*Task-Threads*",), copy=("/home/me/app", "/srv/app")),
        ),
        RankRecord(group="job", rank=0, host="node2", port=1),
    ]


def test_a_group_before_a_ranks_file_wins(tmp_path: Path) -> None:
    word = ranks_file(tmp_path, [{"group": "old", "host": "a", "port": 1}])
    assert parse_endpoints([f"new={word}"])[0].group == "new"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{not json", "is not JSON"),
        ({"host": "a", "port": 1}, "must hold a list"),
        (["a:1"], "entry 0: must be an object"),
        ([{"host": "a", "port": 1}, {"port": 1}], "entry 1: host is missing"),
        ([{"host": "a"}], "entry 0: port is missing"),
        ([{"host": "a", "port": "5678"}], 'port must be a number, 0 or more, not "5678"'),
        ([{"host": "a", "port": 0}], "port must be a port, 1 to 65535, not 0"),
        ([{"host": "a", "port": 1, "rank": -1}], "rank must be a number, 0 or more, not -1"),
        ([{"host": "a", "port": 1, "rank": True}], "rank must be a number, 0 or more, not true"),
        ([{"host": 1, "port": 1}], "host must be text, not 1"),
        ([{"host": "a", "port": 1, "coords": {"dp": "x"}}], "coords must be an object"),
    ],
)
def test_a_wrong_ranks_file_names_file_and_entry(
    tmp_path: Path, content: object, complaint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_endpoints([ranks_file(tmp_path, content)])
    assert complaint in str(caught.value)
    assert "ranks.json" in str(caught.value)


# Properties

HOSTS = st.sampled_from(["localhost", "10.0.0.7", "node-1.cluster", "::1", "fe80::1%eth0"])


@settings(deadline=None)
@given(HOSTS, st.integers(1, 65535), st.integers(1, 40))
def test_what_is_printed_is_read_back(host: str, first: int, count: int) -> None:
    record = RankRecord(host=host, port=first)
    assert parse_endpoint(record.endpoint) == [record]
    last = min(first + count - 1, 65535)
    ranged = parse_endpoints([f"{record.endpoint}-{last}"])
    assert [one.port for one in ranged] == list(range(first, last + 1))
    assert ranged == parse_endpoints([f"{record.endpoint}+{last - first + 1}"])


@settings(deadline=None)
@given(st.text(alphabet="ab:@=-+[]0159.% \n", max_size=14).filter(lambda word: "@" not in word))
def test_any_text_is_ranks_or_a_usage_error(word: str) -> None:
    try:
        records = parse_endpoints([word])
    except UsageError:
        return
    assert records
    assert [one.rank for one in records] == list(range(len(records)))


# A ranks file that is followed: whatever is written into it is read.

AHEAD = time.time_ns() + 10**12  # by a clock that is ahead: no pause of ours makes the file old


def write(path: Path, port: int) -> None:
    """Write one rank into it; size and time are the same each time."""
    path.write_text(json.dumps([{"host": "node1", "port": port}]))
    os.utime(path, ns=(AHEAD, AHEAD))


async def test_a_change_that_its_time_does_not_show_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice written within one tick of the file system's clock; the same ranks are no news."""
    path, reads = tmp_path / "ranks.json", []

    def reading(of: Path) -> list[RankRecord]:
        found = read_ranks_file(of)
        reads.append(found)
        if len(reads) == 3:
            write(path, 5679)
        return found

    monkeypatch.setattr(endpoints, "POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(endpoints, "read_ranks_file", reading)
    write(path, 5678)
    source = RanksFile(str(path))
    assert [one.port for one in await source.discover()] == [5678]
    async for ranks in source.watch():
        assert [one.port for one in ranks] == [5679]
        break
    assert len(reads) == 4


async def test_a_file_without_ranks_is_refused(tmp_path: Path) -> None:
    """At the beginning: who would wait for it would see nothing of a wrong file."""
    path = tmp_path / "ranks.json"
    path.write_text("[]")
    with pytest.raises(UsageError, match="no ranks are in it"):
        await RanksFile(str(path)).discover()
