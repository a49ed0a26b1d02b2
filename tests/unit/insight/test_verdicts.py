"""Each verdict of `why`, on evidence made for it; and which comes first where two hold."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dap_mux.pure.insight.why.evidence import (
    Call,
    Collective,
    Process,
    RankEvidence,
    Sample,
    Standing,
    Thread,
)
from dap_mux.pure.insight.why.verdicts import EXIT_CODES
from tests.unit.insight.judging import named, verdict

FILES: list[tuple[str, bool]] = [
    ("/job/train.py", False),
    ("/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py", True),
    ("/usr/lib/python3/queue.py", True),
    ("/usr/lib/python3/pdb.py", True),
]
FUNCTIONS = ["train", "all_reduce", "get", "interaction", "barrier", "load", "init_process_group"]
TRAIN, GET, PDB = (0, 0, 40), (2, 2, 9), (3, 3, 5)
BARRIER, LOAD = (0, 4, 70), (0, 5, 30)
RECEIVE = Call("s.recv(1)", "_socket.socket.recv")
SLEEP = Call("time.sleep(60)", "time.sleep")
Ranks = dict[int, RankEvidence]


def sample(*frames: tuple[int, int, int], more: list[Thread] | None = None, **of: Any) -> Sample:
    """A sample of a rank whose main thread is there."""
    world = {name: of.pop(name) for name in ("collectives", "finalizing", "recorder") if name in of}
    main = Thread("MainThread", True, [TRAIN, *frames], **of)
    return Sample(FILES, FUNCTIONS, [main, *(more or [])], **world)


def at(*frames: tuple[int, int, int], **of: Any) -> RankEvidence:
    """A rank that is there each time."""
    return RankEvidence(("job", 0), samples=[sample(*frames, **of)] * 3)


def reduces(**of: Any) -> RankEvidence:
    """A rank that waits for others in `all_reduce`."""
    return at((0, 1, 50), call=RECEIVE, state="S", **of)


def works() -> RankEvidence:
    """A rank that uses its processor."""
    return RankEvidence(("job", 0), samples=[sample(LOAD, cpu=0.3 * n) for n in range(3)])


def gets_on() -> RankEvidence:
    """A rank that is at another line each time."""
    return RankEvidence(("job", 0), samples=[sample((0, 0, line)) for line in (41, 42, 43)])


def standing(of: RankEvidence, **said: Any) -> RankEvidence:
    return RankEvidence(of.rank, Standing(**said), of.samples, of.processes)


def seen(of: RankEvidence, *processes: Process) -> RankEvidence:
    return RankEvidence(of.rank, of.standing, of.samples, processes)


def silent(*processes: Process) -> RankEvidence:
    return RankEvidence(("job", 0), Standing(problem="no answer within 1 s"), (), processes)


def recorded(kind: str = "all_reduce", number: int = 41, **of: Any) -> RankEvidence:
    """A rank in torch's collective, by the flight recorder."""
    done = Collective("dp", number - 1, kind, state="completed")
    entry = Collective("dp", number, kind, **{"state": "started", "age": 41.0, **of})
    return at((1, 1, 80), collectives=[done, entry], recorder="on")


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ({"exit_code": 3}, "exit code 3"),
        ({"exit_code": -9}, "killed by SIGKILL"),
        ({"exit_code": -77}, "signal 77"),
        ({"exit_code": 0}, "without an error"),
        ({"state": "exited", "problem": "its pod is gone"}, "its pod is gone"),
    ],
)
def test_a_process_that_is_gone(ended: dict[str, Any], words: str) -> None:
    found = verdict(reduces(), standing(at(), **ended), reduces())
    assert named(found) == ("process-gone", "1")
    assert words in found.sentence


def test_a_process_that_the_kernel_has_killed() -> None:
    gone = seen(standing(at(), exit_code=-9), Process(7, out_of_memory=True))
    assert "out of memory" in verdict(gone, reduces()).sentence


def test_who_has_ended_well_keeps_nobody_waiting() -> None:
    assert verdict(standing(at(), exit_code=0, state="exited"), works()).name == "healthy"


@pytest.mark.parametrize(("state", "words"), [("T", "SIGSTOP"), ("t", "another debugger")])
def test_a_process_that_is_stopped(state: str, words: str) -> None:
    found = verdict(reduces(), silent(Process(7, state)), reduces())
    assert named(found) == ("process-stopped", "1")
    assert words in found.sentence


@pytest.mark.parametrize("held", [standing(at(), stop="breakpoint"), at(PDB)], ids=["ours", "pdb"])
def test_a_rank_in_a_debugger(held: RankEvidence) -> None:
    assert named(verdict(reduces(), reduces(), held)) == ("held-by-debugger", "2")


def test_a_rank_that_an_exception_holds_is_looked_at() -> None:
    """To continue it would end it; it is named alone, whoever else is stopped."""
    held = standing(at(), stop="exception ValueError: shard-3 is truncated")
    found = verdict(standing(at(), stop="breakpoint"), held, reduces())
    assert named(found) == ("held-by-debugger", "1")
    assert "ValueError: shard-3 is truncated" in found.sentence
    assert found.next == "cast 1 p __exception__"


def test_an_exception_that_is_held() -> None:
    held = at(LOAD, call=SLEEP, handling="ValueError: bad shard")
    found = verdict(reduces(), held)
    assert named(found) == ("exception-held", "1")
    assert "ValueError: bad shard" in found.sentence


def test_pythons_global_lock_is_held() -> None:
    looks = [Process(7, "S", switches={1: n, 2: n, 3: 5}, at=n / 200) for n in (0, 120)]
    assert named(verdict(reduces(), silent(*looks))) == ("gil-held", "1")
    over = standing(silent(*looks), state="exited")  # nobody asks its debugger, which is gone
    assert named(verdict(reduces(), over)) == ("teardown", "1")
    one = [Process(7, "S", switches={1: n, 3: 5}, at=n / 200) for n in (0, 120)]
    assert verdict(reduces(), silent(*one)).name == "undecided"
    rates = {1: 0.4, 2: 0.6, 3: 0.9}  # others poll as well, each at its own rate
    polls = [
        Process(
            7, "S", switches={thread: int(rate * n) for thread, rate in rates.items()}, at=n / 200
        )
        for n in (0, 120)
    ]
    assert verdict(reduces(), silent(*polls)).name == "undecided"


@pytest.mark.parametrize("by", [{"owner": "B"}, {}], ids=["owner", "holds"])
def test_locks_in_a_circle(by: dict[str, str]) -> None:
    other = Thread("B", False, [LOAD], lock="lock 1", holds=["lock 2"])
    waits = at(LOAD, lock="lock 2", holds=["lock 1"], more=[other], **by)
    found = verdict(reduces(), waits)
    assert named(found) == ("lock-cycle", "1")
    assert "B waits for a lock of MainThread" in found.sentence
    alone = at(LOAD, lock="lock 1", holds=["lock 1"])
    assert "that it has itself" in verdict(reduces(), alone).sentence


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (recorded("barrier"), "calls barrier #41"),
        (recorded(sizes=[[3]]), "sizes [3]"),
        (recorded(dtypes=["Half"]), "Half"),
        (recorded(number=42), "#42"),
    ],
)
def test_collectives_that_do_not_match(other: RankEvidence, words: str) -> None:
    found = verdict(recorded(), other, recorded(), recorded())
    assert named(found) == ("mismatched-collective", "1")
    assert words in found.sentence
    assert "for 41 s" in " ".join(found.evidence)


def test_two_groups_that_wait_for_each_other() -> None:
    def in_group(name: str) -> RankEvidence:
        entry = Collective(name, 3, "all_reduce", members=[0, 1, 2], state="started")
        return at((1, 1, 80), collectives=[entry])

    assert verdict(in_group("a"), in_group("a"), in_group("b")).name == "mismatched-collective"


def sends(function: str, peer: int) -> RankEvidence:
    call = Call("comm.recv(source=left)", f"mpi4py.MPI.Comm.{function}", {"source": peer})
    return at(call=call)


def test_receives_in_a_circle() -> None:
    assert named(verdict(sends("recv", 1), sends("recv", 0), reduces())) == ("p2p-cycle", "0")
    assert verdict(sends("recv", 1), sends("recv", 2), works()).name != "p2p-cycle"


def test_a_send_and_its_receive_are_no_circle() -> None:
    assert verdict(sends("send", 1), sends("recv", 0), reduces()).name == "undecided"
    assert verdict(sends("send", 1), sends("send", 0), reduces()).name == "p2p-cycle"


def test_a_rank_whose_link_is_lost_may_run_on() -> None:
    lost = standing(silent(), state="lost", problem="connection refused")
    assert named(verdict(reduces(), lost)) == ("undecided", "1")


def test_each_rank_that_tells_nothing_has_its_own_reason() -> None:
    slow = standing(silent(), problem="no answer within 1 s")
    late = standing(silent(), state="connecting", problem="runs a method")
    assert verdict(slow, late, slow).sentence == (
        "ranks 0,2: no answer within 1 s; rank 1: runs a method; nothing else is wrong"
    )


def test_connections_lead_to_the_rank_at_the_other_end() -> None:
    """A `recv` of the job's own that waits for its peer, which waits for this one."""
    receive = {"call": RECEIVE, "state": "S", "system_call": "recvfrom"}
    files = [*FILES[:1], ("/job/net.py", False)]

    def end(number: int, local: str, remote: str) -> RankEvidence:
        thread = Thread(
            "MainThread",
            True,
            [(0, 0, 4), (1, 1, 9)],
            file="socket:[8]",
            **receive,  # type: ignore[arg-type]
        )
        one = Sample(files, ["train", "recv"], [thread])
        whole = Process(number, "S", connections={"socket:[8]": (local, remote)})
        looks = [whole, Process(number, "S")]  # the system may leave some out of one
        return RankEvidence(("job", 0), samples=[one] * 3, processes=looks)

    found = verdict(end(1, "h:1", "h:2"), end(2, "h:2", "h:1"))
    assert found.name == "p2p-cycle"
    server = end(1, "h:1", "server:80")
    assert named(verdict(server, seen(reduces(), Process(2, "S")))) == ("blocked-io", "0")
    unseen = verdict(server, reduces())  # on another machine
    assert unseen.name == "undecided"


def test_a_loader_that_brings_nothing() -> None:
    loader = Thread("loader", False, [LOAD], state="D", system_call="read", file="/data/5.bin")
    found = verdict(reduces(), at(GET, more=[loader]))
    assert named(found) == ("input-starved", "1")
    assert "/data/5.bin" in " ".join(found.evidence)


@pytest.mark.parametrize(
    "waits",
    [{"state": "D"}, {"state": "S", "system_call": "read", "file": "/data/5.bin"}],
    ids=["disk", "file"],
)
def test_a_rank_at_a_file(waits: dict[str, str]) -> None:
    assert named(verdict(reduces(), at(LOAD, **waits))) == ("blocked-io", "1")
    assert verdict(works(), at(LOAD, **waits)).name != "blocked-io"  # nobody waits for it


def test_who_does_not_wait_for_a_files_lock_may_have_it() -> None:
    """One that waits for somebody outside, say: the others, though they are many, wait for it."""
    waits = at(LOAD, system_call="flock", file="/data/set.lock", state="S")
    holder = at((0, 0, 44), call=RECEIVE, state="S")
    assert named(verdict(waits, waits, holder, waits)) == ("blocked-io", "2")
    assert named(verdict(reduces(), reduces(), waits, reduces())) == ("blocked-io", "2")
    # In a barrier, with the lock that all others want before they come to it.
    assert named(verdict(waits, waits, reduces(), waits)) == ("blocked-io", "2")


def test_a_backward_pass_that_sleeps_waits_for_gradients() -> None:
    """DDP reduces them in C++; the rank that is elsewhere is the one to look at."""
    files = [*FILES, ("/usr/lib/python3/site-packages/torch/autograd/graph.py", True)]
    main = Thread("MainThread", True, [TRAIN, (4, 0, 9)], state="S")
    backward = RankEvidence(
        ("job", 0), samples=[Sample(files, FUNCTIONS, [main], world_rank=0)] * 3
    )
    found = verdict(backward, backward, at(LOAD, call=SLEEP, state="S"), backward)
    assert named(found) == ("not-joined", "2")
    busy = replace(main, state="R")
    computes = RankEvidence(
        ("job", 0), samples=[Sample(files, FUNCTIONS, [busy], world_rank=0)] * 3
    )
    assert named(verdict(computes, reduces(), reduces())) == ("slow-rank", "0")


def test_nobody_comes_to_a_rank_that_listens_while_the_others_communicate() -> None:
    listens = at(LOAD, call=Call("server.accept()", "_socket.socket.accept"), state="S",
                 system_call="accept4", file="socket:[1]")  # fmt: skip
    assert named(verdict(reduces(), reduces(), listens, reduces())) == ("blocked-io", "2")


def test_a_rank_on_its_way_out() -> None:
    assert named(verdict(reduces(), at(LOAD, finalizing=True))) == ("teardown", "1")


def test_a_process_that_stays_when_its_program_is_over() -> None:
    """The session has seen the end of the program; a process that works may be ending."""
    over = standing(silent(), state="exited")
    gone = standing(silent(), state="exited", exit_code=0)
    stays, ends = (
        [Process(7, "S", cpu=part * n, at=n) for n in range(3)]
        for part in (0.02, 0.3)  # of a processor
    )
    left = verdict(gone, seen(over, *stays))
    assert (named(left), left.next) == (("teardown", "1"), "dap-mux stacks pid:7")
    assert verdict(gone, seen(over, *ends)).name == "undecided"
    assert named(verdict(reduces(), seen(over, *ends))) == ("teardown", "1")
    assert verdict(works(), seen(over, *stays)).name == "undecided"


def test_a_rank_that_stays_away() -> None:
    found = verdict(reduces(), reduces(), at(LOAD, call=SLEEP, state="S"))
    assert named(found) == ("not-joined", "2")
    assert found.evidence[0] == "it has not reached all_reduce"


def test_a_rank_that_has_not_begun() -> None:
    begins = at((1, 6, 99))
    assert named(verdict(begins, begins, at(LOAD, call=SLEEP))) == ("not-joined", "2")
    assert named(verdict(begins, begins, gets_on())) == ("slow-rank", "2")  # as with imports
    assert named(verdict(begins, gets_on(), gets_on())) == ("healthy", "")


def test_a_rank_that_is_slow() -> None:
    assert named(verdict(reduces(), reduces(), works())) == ("slow-rank", "2")
    starved = at(LOAD, state="R")  # on a machine with too much to do
    assert named(verdict(reduces(), reduces(), starved)) == ("slow-rank", "2")


@pytest.mark.parametrize(
    "ranks", [[works(), works()], [gets_on(), gets_on()], [gets_on(), reduces(), gets_on()]]
)
def test_a_healthy_job(ranks: list[RankEvidence]) -> None:
    assert named(verdict(*ranks)) == ("healthy", "")


def test_a_single_look_at_a_rank_does_not_show_that_it_gets_on() -> None:
    once = RankEvidence(("job", 0), samples=[sample(LOAD)])
    assert verdict(reduces(), reduces(), once).name == "undecided"


def test_what_cannot_be_decided() -> None:
    assert verdict(reduces(), reduces()).name == "undecided"
    assert named(verdict(reduces(), silent())) == ("undecided", "1")
    assert verdict().name == "undecided"


def test_a_job_that_stands_still_and_waits_for_none_of_its_ranks() -> None:
    found = verdict(at(LOAD, call=SLEEP, state="S"), at(LOAD, call=SLEEP, state="S"))
    assert (found.name, found.suspects) == ("undecided", ())
    assert found.sentence.startswith("ranks 0-1 stand still at ")


def test_the_more_specific_one_is_given() -> None:
    stopped = seen(at(LOAD, call=SLEEP), Process(7, "T"))
    assert verdict(reduces(), stopped, at(LOAD, call=SLEEP)).name == "process-stopped"
    gone = standing(at(), exit_code=1)
    assert verdict(reduces(), stopped, gone).name == "process-gone"


def test_exit_codes_are_those_that_are_documented() -> None:
    assert list(EXIT_CODES) == [
        "healthy", "undecided", "process-gone", "process-stopped", "held-by-debugger",
        "exception-held", "gil-held", "lock-cycle", "mismatched-collective", "p2p-cycle",
        "input-starved", "blocked-io", "teardown", "not-joined", "slow-rank",
    ]  # fmt: skip
    assert list(EXIT_CODES.values()) == [0, 1, *range(10, 23)]


def test_malformed_samples_are_left_out() -> None:
    odd = sample((9, 9, 9))
    empty = replace(odd, threads=[])
    found = verdict(RankEvidence(("job", 0), samples=[odd, empty, odd]), reduces())
    assert named(found) == ("undecided", "0")
