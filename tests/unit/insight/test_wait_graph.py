"""The graph of who waits for whom: its edges have reasons, and its shortest circle is found."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from dap_mux.pure.insight.why.evidence import (
    Call,
    Collective,
    Process,
    RankEvidence,
)
from dap_mux.pure.insight.why.graph import WaitGraph, graph_of
from dap_mux.pure.insight.why.picture import picture_of
from dap_mux.pure.rank_sets import RankId
from tests.unit.insight.judging import evidence, named, verdict
from tests.unit.insight.test_why_rules import C10D, at

LOAD = ("/job/data.py", "load", 50)


def graph(waits_for: Mapping[int, set[int]], named: Collection[int] = ()) -> WaitGraph:
    edges = {nth(one): frozenset(map(nth, others)) for one, others in waits_for.items()}
    return WaitGraph(edges, frozenset(map(nth, named)))


def nth(rank: int) -> RankId:
    return ("job", rank)


@pytest.mark.parametrize(
    ("waits_for", "named", "circle"),
    [
        ({}, set(), []),
        ({0: {1}, 1: {2}}, set(), []),
        ({0: {1}, 1: {0}}, set(), [0, 1]),
        ({0: {1}, 1: {2}, 2: {0}}, set(), [0, 1, 2]),
        ({0: {1}, 1: {2}, 2: {0, 3}, 3: {2}}, set(), [2, 3]),
        ({0: {1}, 1: {0}, 2: {3}, 3: {2}}, {2, 3}, [2, 3]),
        ({3: {0}, 0: {1, 2}, 1: {0}}, set(), [0, 1]),
    ],
)
def test_the_shortest_circle(
    waits_for: Mapping[int, set[int]], named: set[int], circle: list[int]
) -> None:
    assert sorted(graph(waits_for, named).circle) == [nth(rank) for rank in circle]


def test_a_circle_of_many_ranks() -> None:
    many = 2000
    assert len(graph({rank: {(rank + 1) % many} for rank in range(many)}).circle) == many


def reduces(group: str, members: list[int], number: int = 3) -> RankEvidence:
    entry = Collective(group, number, "all_reduce", members, state="scheduled")
    return at(40, (C10D, "all_reduce", 50), collectives=[entry])


def asleep() -> RankEvidence:
    return at(40, LOAD, call=Call("time.sleep(60)", "time.sleep"))


def edges(*ranks: RankEvidence) -> dict[int, list[int]]:
    waits_for = graph_of(picture_of(evidence(*ranks))).waits_for
    return {one[1]: sorted(other[1] for other in others) for one, others in waits_for.items()}


def test_members_that_are_not_there_are_waited_for() -> None:
    pair, world = [0, 2], [0, 1, 2, 3]
    found = edges(reduces("pair", pair), reduces("", world), asleep(), reduces("", world))
    assert found == {0: [2], 1: [0, 2], 3: [0, 2]}


def test_who_waits_in_a_group_for_a_rank_that_is_elsewhere_is_not_to_blame() -> None:
    """Its own group is complete but for that rank, and so is that of the others."""
    pair, world = [0, 2], [0, 1, 2, 3]
    found = verdict(reduces("pair", pair), reduces("", world), asleep(), reduces("", world))
    assert named(found) == ("not-joined", "2")


def calls(function: str, members: list[int], **arguments: int) -> RankEvidence:
    """A rank in a call of mpi4py's, of a communicator with these members."""
    of = {"size": len(members), "members": members}
    call = Call(f"comm.{function}()", f"mpi4py.MPI.Comm.{function}", arguments, of)
    return at(40, LOAD, call=call)


def test_a_peer_is_a_number_of_its_communicator() -> None:
    found = edges(asleep(), calls("recv", [1, 3], source=1), asleep(), asleep())
    assert found == {1: [3]}


def test_members_of_one_communicator_wait_for_the_rest_of_it() -> None:
    found = edges(calls("Split", [0, 1, 2]), calls("Split", [0, 1, 2]), asleep(), asleep())
    assert found == {0: [2], 1: [2]}


@pytest.mark.parametrize("members", ["01", [0, "1"], [0, -1], [True, 1], {"0": 1}])
def test_malformed_members_are_unknown(members: Any) -> None:
    call = Call("comm.barrier()", "mpi4py.MPI.Comm.barrier", {}, {"size": 2, "members": members})
    assert edges(at(40, LOAD, call=call), asleep()) == {0: [1]}
    assert edges(at(40, LOAD, call=call), asleep(), asleep()) == {0: []}


def over_sockets(function: str, *peers: int, rank: int) -> RankEvidence:
    """A rank in a collective of the job's own, which reads what the first of its peers sends."""
    ends = {f"socket:[{peer}]": (f"{rank}:{peer}", f"{peer}:{rank}") for peer in peers}
    looks = [Process(rank, "S", connections=ends)]
    reads = {"system_call": "recvfrom", "file": f"socket:[{peers[0]}]"}
    return at(40, ("/job/net.py", function, 50), processes=looks, **reads)


@pytest.mark.parametrize("many", [8, 512])
def test_of_many_ranks_one_is_in_another_collective(many: int) -> None:
    """Whom each rank waits for is known by the connections of their processes alone."""
    ranks = [over_sockets("all_reduce", 0, rank=number) for number in range(many)]
    ranks[6] = over_sockets("barrier", 0, rank=6)
    ranks[0] = over_sockets("all_reduce", 6, *({*range(1, many)} - {6}), rank=0)
    assert named(verdict(*ranks)) == ("mismatched-collective", "6")
    assert verdict(*(replace(one, processes=()) for one in ranks)).name == "undecided"
