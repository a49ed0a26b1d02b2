"""What machines have printed about their ranks: put together, or refused."""

from __future__ import annotations

import json
import random
from typing import Any, Final

import pytest

from dap_mux.cluster.machines import Machine
from dap_mux.pure.errors import DapMuxError, PeerFault, UsageError
from dap_mux.rank.outside.host_look import MARK
from dap_mux.session.machines_view import Found, evidence_in, one_job, read_answer
from tests.conftest import rounds

LOCAL: Final = ["0100007F:1234", "0100007F:1235"]
FAR: Final = ["02014D0A:1234", "02024D0A:1235"]
Json = dict[str, Any]


def rank(number: int, **changed: Any) -> Json:
    frame = {"name": "load", "filename": "/w/train.py", "line": 2, "locals": []}
    thread = {"os_thread_id": 7, "thread_name": "MainThread", "frames": [frame]}
    state = {"tid": 7, "state": "S", "system_call": "recvfrom", "file": "socket:[81]"}
    look = {
        "threads": [thread],
        "state": "S",
        "at": 1.0,
        "cpu": 0.5,
        "switches": {"7": 3},
        "sockets": {"socket:[81]": LOCAL, "socket:[82]": FAR},
        "states": {"7": state},
    }
    return {
        "pid": 7,
        "rank": number,
        "size": 2,
        "launcher": "torchrun",
        "job": "a:1",
        "program": "train.py",
        "listens": False,
        "problem": "",
        "looks": [look] * 3,
        **changed,
    }


def printed(*ranks: Json, **changed: Any) -> bytes:
    body = {
        "ranks": ranks,
        "sources": {"/w/train.py": "\nlink.recv(8)\n"},
        "more": 0,
        "hidden": 0,
        "adapters": False,
        **changed,
    }
    return f"Welcome!\n\n{MARK}{json.dumps(body)}\n".encode()


def machine(name: str, **changed: Any) -> Machine:
    return Machine(name=name, reach=lambda script: [script], right="root may", **changed)


def found(name: str, text: bytes) -> list[Found]:
    answer = read_answer(text)
    return [Found(machine(name), each, answer, {}) for each in answer.ranks]


def test_ranks_of_two_machines_become_one_job() -> None:
    view = evidence_in({machine("node1"): printed(rank(0)), machine("node2"): printed(rank(1))}, "")
    assert [one.rank[1] for one in view.ranks] == [0, 1]
    assert [one.machine for one in view.ranks] == ["node1", "node2"]
    (first, second) = view.ranks
    assert first.processes[0].connections == {
        "socket:[81]": ("127.0.0.1:4660 on node1", "127.0.0.1:4661 on node1"),
        "socket:[82]": ("10.77.1.2:4660", "10.77.2.2:4661"),
    }
    assert second.processes[0].connections["socket:[81]"][0] == "127.0.0.1:4660 on node2"
    (thread,) = first.samples[0].threads
    assert (thread.main, thread.state, thread.file) == (True, "S", "socket:[81]")
    assert thread.call is not None
    assert thread.call.text == "link.recv(8)"


def test_machines_without_an_answer_are_lines() -> None:
    said: dict[Machine, bytes | DapMuxError] = {
        machine("node1"): printed(rank(0)),
        machine("node2"): DapMuxError("no answer within 8 s"),
        machine("node3"): b"-bash: python3: not found",
        machine("node4"): printed(hidden=2),
        machine("pod x", everybody=True): printed(more=3),
    }
    assert evidence_in(said, "").lines == [
        "node2: no answer within 8 s",
        "node3: its Python has printed something else than was asked for",
        "node4: ranks in networks of their own are not looked at (2): run dap-mux inside them",
        "pod x: 3 more ranks are not looked at",
        (
            "pod x: no rank of a distributed Python job is seen there; those of its other "
            "containers are with `shareProcessNamespace: true`"
        ),
    ]
    with pytest.raises(DapMuxError, match="node2: no answer within 8 s"):
        evidence_in({machine("node2"): DapMuxError("no answer within 8 s")}, "")


def test_ranks_that_listen_are_asked_through_their_debugger() -> None:
    """One on each machine, or those that SLURM has numbered; and ranks without any number."""
    one, two = machine("node1"), machine("node2")
    listening = printed(rank(0, listens=True)), printed(rank(1, listens=True))
    assert evidence_in(dict(zip((one, two), listening, strict=True)), "").listens
    both = [rank(number, listens=True) for number in (0, 1)]
    assert not evidence_in({one: printed(*both)}, "").listens
    tasks = [{**each, "launcher": "SLURM"} for each in both]
    assert evidence_in({one: printed(*tasks)}, "").listens
    assert not evidence_in({one: printed(tasks[0], rank(1, launcher="SLURM"))}, "").listens
    assert evidence_in({one: printed(adapters=True)}, "").listens


def test_ranks_of_machines_without_an_answer_are_ranks() -> None:
    view = evidence_in({machine("node2"): printed(rank(1))}, "")
    assert [(one.rank[1], one.problem) for one in view.ranks] == [
        (1, ""),
        (0, "it is on no machine that has answered"),
    ]


def test_what_would_allow_to_read_a_process() -> None:
    problem = "its memory cannot be read: Permission denied"
    unread = rank(0, problem=problem, looks=[])
    view = evidence_in({machine("node1"): printed(unread, rank(1))}, "")
    assert view.lines == [f"rank 0: {problem}; root may"]


def test_one_of_several_jobs_is_chosen_by_its_name() -> None:
    ranks = found("node1", printed(rank(0), rank(0, job="b\x1b:2", pid=8), rank(1)))
    with pytest.raises(UsageError, match=r"a:1 \(ranks 0-1, train.py\), b\\x1b:2 \(rank 0, "):
        one_job(ranks, "")
    assert [one.seen.pid for one in one_job(ranks, r"b\x1b:2")] == [8]
    with pytest.raises(UsageError, match="no job c; there are a:1"):
        one_job(ranks, "c")
    twice = found("node1", printed(rank(0))) + found("node2", printed(rank(0)))
    with pytest.raises(UsageError, match="process 7 on node1 and process 7 on node2"):
        one_job(twice, "")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        f"\n{MARK}".encode(),
        f"\n{MARK}[]".encode(),
        printed(rank(-1)),
        printed(rank(1 << 40)),
        printed(rank(0, looks=[{}])),
        printed(rank(0, pid="7")),
    ],
)
def test_malformed_answers_are_refused(text: bytes) -> None:
    with pytest.raises(PeerFault):
        read_answer(text)


def test_hostile_answers_are_refused_or_judged() -> None:
    """Any value of an answer may be another: it is a line, or evidence."""
    chance = random.Random(7)
    for _ in range(rounds(400)):
        body = json.loads(printed(rank(0), rank(1)).rpartition(MARK.encode())[2])
        _spoil(body, chance)
        text = f"\n{MARK}{json.dumps(body)}".encode()
        try:
            view = evidence_in({machine("node1"): text}, "")
        except DapMuxError:
            continue
        assert all(line.isprintable() for line in view.lines)


def _spoil(body: Any, chance: random.Random) -> None:
    """Replace one value somewhere in it."""
    while isinstance(body, (dict, list)) and body:
        keys = [*body] if isinstance(body, dict) else [*range(len(body))]
        key = chance.choice(keys)
        if not isinstance(body[key], (dict, list)) or chance.random() < 0.2:
            body[key] = chance.choice([-1, 1 << 70, "\x1b[2J", "", [], {}, None, 1e300, ["zz:zz"]])
            return
        body = body[key]
