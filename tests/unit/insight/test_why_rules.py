"""Rules of `why` that faults reported by others have asked for, each on evidence made for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from dap_mux.pure.insight.why.evidence import (
    Call,
    Child,
    Collective,
    Process,
    RankEvidence,
    Sample,
    Standing,
    Thread,
)
from dap_mux.pure.insight.why.verdict import Verdict
from tests.unit.insight.judging import named, verdict

C10D: Final = "/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
FUNCTIONAL: Final = "/lib/python3.11/site-packages/torch/distributed/_functional_collectives.py"
CONNECTION: Final = "/lib/python3.11/multiprocessing/connection.py"
Frame = tuple[str, str, int]


def sample(frames: Sequence[Frame], **of: Any) -> Sample:
    """A look at a rank whose main thread is there; the first frame is the program's own."""
    files = {path: at for at, (path, _, _) in enumerate(frames)}
    names = {name: at for at, (_, name, _) in enumerate(frames)}
    children = of.pop("children", [])
    collectives = of.pop("collectives", [])
    main = Thread(
        "MainThread", True, [(at, at, line) for at, (_, _, line) in enumerate(frames)], **of
    )
    assert len(files) == len(names) == len(frames)
    return Sample(
        [(path, "site-packages" in path or "/lib/" in path) for path in files],
        [*names],
        [main],
        children=children,
        collectives=collectives,
    )


def at(line: int, *frames: Frame, processes: Sequence[Process] = (), **of: Any) -> RankEvidence:
    """A rank that is there at each look."""
    one = sample([("/job/train.py", "train", line), *frames], state="S", **of)
    return RankEvidence(("job", 0), Standing(), [one] * 3, processes)


def accused(found: Verdict, *, all_of_it: bool = False) -> list[int]:
    suspects = found.suspects if all_of_it else found.suspects[:1]
    return [rank for suspect in suspects for _, rank in suspect.ranks]


def in_torch(function: str, line: int = 10, **arguments: Any) -> RankEvidence:
    """A rank in a function of torch's, whose arguments are known."""
    return at(line, (C10D, function, 99), call=Call("", arguments=arguments))


def test_who_asks_torch_for_its_number_waits_for_nobody() -> None:
    """A loop without end that asks for it at each turn is at work; the others wait for it."""
    looks = [
        sample([("/job/train.py", "train", 5), *frames], state="R", cpu=0.3 * number)
        for number, frames in enumerate(([(C10D, "get_rank", 7)], [], [(C10D, "get_rank", 9)]))
    ]
    busy = RankEvidence(("job", 2), Standing(), looks)
    barrier = in_torch("monitored_barrier")
    assert named(verdict(barrier, barrier, busy, barrier)) == ("slow-rank", "2")


class TestWhatAllMustAgreeOn:
    """Ranks are in one call, with something in it that must be alike."""

    def test_a_gather_to_another_rank(self) -> None:
        to_0, to_2, barrier = (
            in_torch("gather", dst=0),
            in_torch("gather", dst=2),
            in_torch("barrier", 11),
        )
        found = verdict(to_0, barrier, to_2, barrier)
        assert named(found) == ("mismatched-collective", "2")
        assert "gather to rank 2, not to rank 0," in found.sentence

    def test_a_broadcast_from_another_rank(self) -> None:
        right, wrong = in_torch("broadcast", src=0), in_torch("broadcast", src=1)
        assert named(verdict(right, right, right, wrong)) == ("mismatched-collective", "3")

    def test_a_group_of_other_ranks(self) -> None:
        first, other = ("_new_group_with_tag", 9), {"ranks": "[1, 2, 3]"}
        frames = [(C10D, "new_group", 5), ("/x/torch/distributed/tags.py", *first)]
        ours = at(20, *frames, call=Call("", arguments={"ranks": "[0, 1, 2]"}))
        theirs = at(20, *frames, call=Call("", arguments=other))
        found = verdict(ours, ours, theirs, ours)
        assert named(found) == ("mismatched-collective", "2")
        assert "new_group of ranks [1, 2, 3]" in found.sentence

    def test_another_port_at_the_rendezvous(self) -> None:
        joins = [
            in_torch("init_process_group", rank=rank, hostname="node", port=port)
            for rank, port in enumerate((29500, 29500, 29501, 29500))
        ]
        found = verdict(*joins)
        assert named(found) == ("mismatched-collective", "2")
        assert "port 29501" in found.sentence

    def test_a_rank_that_has_not_met_the_others(self) -> None:
        """The others are past the rendezvous, at which this one still is."""
        met = [in_torch("init_process_group", rank=rank) for rank in (0, 1, 3)]
        late = in_torch("init_process_group", rank=2, port=1)
        assert named(verdict(met[0], met[1], late, met[2])) == ("mismatched-collective", "2")

    def test_a_job_that_is_just_meeting(self) -> None:
        """Rank 0 waits for the one that connects: both know the same port."""
        met = [in_torch("init_process_group", rank=rank) for rank in (1, 3)]
        meet = [in_torch("init_process_group", rank=rank, port=1) for rank in (0, 2)]
        assert verdict(meet[0], met[0], meet[1], met[1]).name == "undecided"

    def test_a_rank_that_has_not_begun_comes_before(self) -> None:
        met = [in_torch("init_process_group", rank=rank) for rank in (1, 2)]
        found = verdict(in_torch("init_process_group", rank=0, port=1), *met, at(5))
        assert named(found) == ("not-joined", "3")

    def test_a_root_that_is_kept_where_others_have_passed(self) -> None:
        """Ranks that have their part are a line further; a rank in another call blocks all."""
        root, further, other = (
            in_torch("broadcast", 10),
            in_torch("all_reduce", 11),
            in_torch("barrier", 5),
        )
        found = verdict(root, further, other, further)
        assert (found.name, accused(found, all_of_it=True)[0]) == ("mismatched-collective", 2)
        assert found.sentence.startswith("rank 2: calls barrier")

    def test_a_root_that_has_not_come_so_far_alone(self) -> None:
        """There is nobody else whom it could wait for."""
        root, further = in_torch("broadcast", 10), in_torch("all_reduce", 11)
        assert named(verdict(root, further, further, further)) == ("mismatched-collective", "0")

    def test_another_way_to_meet(self) -> None:
        """A file on this node's disk; what follows a question mark is each rank's own."""
        nodes = ("node-0", "node-0", "node-1", "node-0")
        joins = [
            in_torch("init_process_group", rank=rank, init_method=f"file:///{node}?rank={rank}")
            for rank, node in enumerate(nodes)
        ]
        found = verdict(*joins)
        assert named(found) == ("mismatched-collective", "2")
        assert "by file:///node-1, not by file:///node-0," in found.sentence
        assert verdict(joins[0], joins[1], joins[3]).name == "undecided"

    def test_few_are_in_a_collective_where_most_send_and_receive(self) -> None:
        """Their peers are unknown, as in `batch_isend_irecv`; every rank is in one or the other."""
        exchanges = at(20, (C10D, "wait", 7), call=Call("work.wait()"))
        found = verdict(exchanges, exchanges, in_torch("all_reduce", 30), exchanges)
        assert named(found) == ("mismatched-collective", "2")
        assert verdict(exchanges, in_torch("all_reduce", 30)).name == "undecided"

    def test_a_world_of_another_size(self) -> None:
        sizes = (4, 4, 6, 4)
        joins = [
            in_torch("init_process_group", rank=at, world_size=n) for at, n in enumerate(sizes)
        ]
        found = verdict(*joins)
        assert named(found) == ("mismatched-collective", "2")
        assert "for 6 ranks, not for 4 ranks" in found.sentence

    def test_a_number_that_is_given_twice(self) -> None:
        joins = [in_torch("init_process_group", rank=rank) for rank in (0, 1, 1, 3)]
        found = verdict(*joins)
        assert named(found) == ("mismatched-collective", "2")
        assert "ranks 1-2 both call themselves rank 1" in found.sentence


class TestPlaces:
    """Nothing but the places of their calls tells ranks apart."""

    def test_a_collective_whose_kind_is_not_known(self) -> None:
        waits = [at(line, (FUNCTIONAL, "wait_tensor", 9)) for line in (26, 26, 29, 26)]
        found = verdict(*waits)
        assert named(found) == ("mismatched-collective", "2")
        assert "rank 2: waits in a collective at train.py:29" in found.sentence

    def test_a_key_in_the_store(self) -> None:
        call = Call("store.wait(keys)", "torch._C._distributed_c10d.TCPStore.wait")
        found = verdict(*(at(line, call=call) for line in (27, 27, 25, 27)))
        assert named(found) == ("mismatched-collective", "2")
        assert "store.wait(keys)" in found.sentence

    def test_two_halves_accuse_nobody(self) -> None:
        waits = [at(line, (FUNCTIONAL, "wait_tensor", 9)) for line in (26, 26, 29, 29)]
        assert verdict(*waits).name == "undecided"

    @pytest.mark.parametrize("name", ["all_gather_single", "all_gather_into_tensor_coalesced"])
    def test_a_name_that_another_torch_has(self, name: str) -> None:
        found = verdict(*[in_torch(name)] * 3, in_torch("all_reduce", 12))
        assert named(found) == ("mismatched-collective", "3")


class TestEndsOfSends:
    """One rank is in a send or receive; its peer is in a collective with all others."""

    def reduces(self) -> RankEvidence:
        entry = Collective("default_pg", 5, "all_reduce", [0, 1, 2, 3])
        return at(30, (C10D, "all_reduce", 9), call=Call("w.wait()"), collectives=[entry])

    def test_a_send_that_nobody_receives_is_one_too_many(self) -> None:
        others = self.reduces()
        found = verdict(others, others, in_torch("send", dst=0), others)
        assert accused(found) == [2]
        assert accused(found, all_of_it=True)[:2] == [2, 0]

    def test_of_a_receive_both_ends_are_named(self) -> None:
        others = self.reduces()
        found = verdict(others, others, in_torch("recv", src=0), others)
        assert [suspect.ranks for suspect in found.suspects[:2]] == [(("job", 0),), (("job", 2),)]


class TestWhereTheyParted:
    """Of a broadcast, ranks may go on whose call matched that of the one that is still in it."""

    def of(self, line: int, *calls: str) -> RankEvidence:
        entries = [
            Collective("default_pg", number, kind, [0, 1, 2, 3], state=state)
            for number, kind in enumerate(calls, 1)
            for state in ["scheduled" if number == len(calls) else "completed"]
        ]
        call = Call("work.wait()")
        return at(line, (C10D, calls[-1], 9), call=call, collectives=entries)

    def test_who_has_made_another_call_is_named(self) -> None:
        source, gone_on = self.of(5, "broadcast"), self.of(6, "broadcast", "all_reduce")
        found = verdict(source, gone_on, self.of(4, "barrier"), gone_on)
        assert named(found) == ("mismatched-collective", "2")

    def test_without_a_record_the_many_are_right(self) -> None:
        source, gone_on = self.of(5, "broadcast"), self.of(6, "?", "all_reduce")
        found = verdict(source, gone_on, self.of(4, "barrier"), gone_on)
        assert found.name == "mismatched-collective"


class TestOwnProcesses:
    """Connections of `multiprocessing` lead to processes of the rank's own, or to other ranks."""

    def reads(self, socket: str, end: str) -> RankEvidence:
        process = Process(1, "S", connections={socket: ("127.0.0.1:1", end)} if end else {})
        frames = (CONNECTION, "recv", 9)
        return at(3, frames, system_call="read", file=socket, processes=[process])

    def test_the_other_end_is_a_rank(self) -> None:
        listens = Process(2, "S", connections={"socket:[9]": ("127.0.0.1:2", "127.0.0.1:1")})
        pool = at(8, processes=[listens])
        assert named(verdict(self.reads("socket:[5]", "127.0.0.1:2"), pool)) == ("not-joined", "1")

    def test_the_other_end_is_none(self) -> None:
        found = verdict(self.reads("socket:[5]", ""), in_torch("all_reduce"))
        assert accused(found) == [0]
        assert found.name != "undecided"


def reads_a_socket(**of: Any) -> RankEvidence:
    """A rank whose other end is in no process that was looked at."""
    return at(3, system_call="recvfrom", file="socket:[5]", **of)


def test_no_rank_writes_to_a_socket_while_all_others_are_in_torchs_collective() -> None:
    found = verdict(in_torch("all_reduce"), reads_a_socket(), in_torch("all_reduce"))
    assert named(found) == ("blocked-io", "1")
    found = verdict(in_torch("all_reduce"), reads_a_socket(), in_torch("barrier", 11))
    assert found.name != "blocked-io", "others are not in the same"


def test_a_rank_that_waits_for_its_thread_is_where_that_thread_is() -> None:
    saves = in_torch("all_gather_object")
    (thread,) = saves.samples[0].threads
    one = sample([("/job/train.py", "train", 8), ("/lib/concurrent/futures/_base.py", "result", 9)])
    files = [*one.files, *saves.samples[0].files]
    moved = [(at + len(one.files), at + len(one.functions), line) for at, _, line in thread.frames]
    functions = [*one.functions, *saves.samples[0].functions]
    both = [*one.threads, replace(thread, name="save", main=False, frames=moved)]
    waits = RankEvidence(("job", 0), Standing(), [Sample(files, functions, both)] * 3)
    found = verdict(waits, waits, in_torch("all_reduce"), waits)
    assert named(found) == ("mismatched-collective", "2")


def test_a_rank_that_joins_more_ranks_than_there_are() -> None:
    """It waits for those that never come; the others have passed, and wait for it."""
    joins = in_torch("init_process_group", rank=2, world_size=6)
    barrier = in_torch("barrier", 11)
    found = verdict(barrier, barrier, joins, barrier)
    assert named(found) == ("mismatched-collective", "2")
    assert "still in init_process_group for 6 ranks, which has ended" in found.sentence
    rightly = in_torch("init_process_group", rank=3, world_size=4)
    assert accused(verdict(barrier, barrier, joins, rightly)) == [2], "there are four"
    found = verdict(joins, joins, barrier, joins)
    assert accused(found) != [0, 1, 3], "most are where the job begins"


class TestChildren:
    """A rank waits, and its processes say for what."""

    @pytest.mark.parametrize(
        ("child", "words"),
        [
            (Child(7, "x", "S", "futex"), "its child process 7 waits for a lock"),
            (Child(7, "x", "S", "write", "pipe:[1]"), "is in write of pipe:[1], asleep"),
            (Child(7, "x", "Z"), "its child process 7 has ended"),
            (Child(7, "x", "R"), "its child process 7 is at work"),
        ],
    )
    def test_they_are_in_the_evidence(self, child: Child, words: str) -> None:
        found = verdict(at(3, children=[child]), in_torch("all_reduce"))
        assert found.name == "not-joined"
        assert any(words in line for line in found.evidence)

    def test_few_of_many_are_named(self) -> None:
        many = [Child(number, "x", "S", "futex") for number in range(1, 9)]
        found = verdict(at(3, children=many), in_torch("all_reduce"))
        assert [line for line in found.evidence if "child" in line] == [
            f"its child process {each.pid} waits for a lock or for another thread (futex)"
            for each in many[:3]
        ]
        assert "and so on" in found.evidence
