"""Processes that ranks start: let go by default, debugged as workers with `subProcess: true`."""

from __future__ import annotations

import json
from typing import Any

from dap_mux.engine import inputs, outputs
from dap_mux.engine.ranks.deaths import MAX_CHILDREN
from dap_mux.pure.protocol.messages import decode
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, frame_of, names
from tests.support.fake_rank.rank import FakeRank
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

Json = dict[str, Any]


def starts(book: Playbook, rank: int, pid: int) -> FakeRank:
    """A rank starts a process, and all that follows from it."""
    with book.happens():
        return book.rank(rank).children.start(pid)


def debugging(book: Playbook, /, *children: tuple[int, int], **arguments: Any) -> Client:
    """A client with `subProcess: true`; the children (rank, pid) are attached already."""
    client = attached(book, subProcess=True, **arguments)
    with book.quietly(f"(rank, pid) of children that are attached: {children}"):
        for rank, pid in children:
            starts(book, rank, pid)
    return client


def hit(book: Playbook, *children: FakeRank) -> None:
    """These processes stop at the breakpoint, and the clients are told."""
    with book.happens():
        for child in children:
            child.hits(LINE)
    book.wait(0.1)


def child(book: Playbook, pid: int) -> FakeRank:
    return next(
        child
        for rank in book.ranks.values()
        for known, child in rank.children.all()
        if known == pid
    )


def workers(client: Client) -> list[tuple[int, int | None, str]]:
    listed = client.ask("list").body["ranks"]
    return [(entry["rank"], entry["worker"], entry["state"]) for entry in listed]


def test_let_go_by_default(play: Play) -> None:
    """A child waits for a debugger although it was kept from that: one more connection frees it."""
    book, client = play.attached(2)
    told = len(client.events)
    started = starts(book, 1, 41)
    assert not started.waits
    assert len(client.events) == told
    assert workers(client) == [(0, None, "running"), (1, None, "running")]


def test_debugged(play: Play) -> None:
    """A worker appears below its rank, has its breakpoints, stops, and runs on with all."""
    book, client = play.attached(2, subProcess=True)
    started = starts(book, 0, 41)
    assert names(client) == ["rank 0", "rank 0 / worker 1", "rank 1"]
    hit(book, started)
    assert workers(client)[1] == (0, 1, "stopped")
    frame = frame_of(client, client.of("stopped")[-1]["threadId"])
    assert client.ask("evaluate", expression="loss", frameId=frame).body["result"] == "0"
    client.ask("continue", threadId=client.of("stopped")[-1]["threadId"])
    assert {state for *_, state in workers(client)} == {"running"}


def test_its_end_is_not_the_sessions(play: Play) -> None:
    """Its row goes, and the next worker takes its number."""
    book, client = play.scene(1, debugging, (0, 41), (0, 42))
    assert names(client) == ["MainThread", "worker 1", "worker 2"]
    with book.happens():
        child(book, 41).exits()
    assert names(client) == ["MainThread", "worker 2"]
    assert client.of("terminated") == client.of("exited") == []
    starts(book, 0, 43)
    assert names(client) == ["MainThread", "worker 1", "worker 2"]


def test_killed_while_stopped(play: Play) -> None:
    """Whoever looked at it is shown another one that is stopped."""
    book, client = play.scene(2, debugging, (0, 41), (1, 42))
    with book.quietly("both workers stop"):
        hit(book, child(book, 41), child(book, 42))
        frame_of(client, client.of("stopped")[-1]["threadId"])
    with book.happens():
        child(book, 41).exits()
    assert workers(client)[1:] == [(1, None, "running"), (1, 1, "stopped")]


def test_stepped_with_its_class(play: Play) -> None:
    """Workers at one place step together; ranks and other workers do not."""
    book, client = play.scene(2, debugging, (0, 41), (1, 42), (1, 43))
    with book.quietly("all but rank 0 stop, rank 1 elsewhere"):
        hit(book, child(book, 41), child(book, 42), child(book, 43))
        with book.happens():
            book.rank(1).stops("breakpoint", 12)
        book.wait(0.5)
    row = book.engine.view.id_of(("job", 0, 1))
    frame_of(client, row)
    client.ask("next", threadId=row)
    book.wait(0.1)
    lines = {(e["rank"], e["worker"]): e["line"] for e in client.ask("list").body["ranks"]}
    assert lines == {(0, None): None, (0, 1): 7, (1, None): 12, (1, 1): 7, (1, 2): 7}


def test_in_classes(play: Play) -> None:
    """A class of workers says so, and whose they are."""
    book = play(3, view="classes")
    client = debugging(book, (0, 41), (0, 42), (1, 43), (2, 44))
    assert names(client) == ["3 × running · ranks 0-2", "4 × running · workers of ranks 0-2"]
    with book.quietly("three workers stop"):
        hit(book, child(book, 41), child(book, 42), child(book, 43))
    assert names(client) == [
        "rank 0 / worker 1 · train.py:6",
        "3 × running · ranks 0-2",
        "2 × train.py:6 · workers of ranks 0-1",
        "rank 2 / worker 1 · running",
    ]


def test_a_child_of_a_child(play: Play) -> None:
    """It is a worker of the same rank."""
    book, client = play.scene(2, debugging, (1, 41))
    with book.happens():
        child(book, 41).children.start(42)
    assert names(client) == ["rank 0", "rank 1", "rank 1 / worker 1", "rank 1 / worker 2"]


def test_what_it_prints(play: Play) -> None:
    """Its lines have its number; equal ones fold."""
    book, client = play.scene(2, debugging, (0, 41), (1, 42), (1, 43))
    with book.happens():
        for pid in (41, 42, 43):
            child(book, pid).prints("epoch 1\n")
        child(book, 43).prints("done\n")
    book.wait(0.1)
    assert "".join(body["output"] for body in client.of("output")) == (
        "[0/1, 1/1-2] epoch 1\n[1/2] done\n"
    )


def test_the_client_leaves(play: Play) -> None:
    """Every process runs on, and the next children are nobody's business."""
    book, client = play.scene(2, debugging, (0, 41))
    with book.quietly("worker and rank stop"):
        hit(book, child(book, 41), book.rank(0))
    client.ask("disconnect")
    book.wait(0.5)
    assert child(book, 41).data.stopped is None
    assert not book.engine.core.links
    assert not starts(book, 0, 42).waits


def test_found_again_under_its_number(play: Play) -> None:
    """The next client meets the processes that still run."""
    book = play(1)
    debugging(book, (0, 41), (0, 42)).ask("disconnect")
    book.wait(0.5)
    with book.quietly("41 ends, and another client comes"):
        child(book, 41).exits()
        client = attached(book, "other", subProcess=True)
    assert names(client) == ["MainThread", "worker 2"]


def test_found_again_although_it_was_slow_to_leave(play: Play) -> None:
    """Its rank waits for it: of its processes a rank tells once, and of those nobody debugs."""
    book, first = play.scene(1, debugging, (0, 41))
    child(book, 41).silent = {"disconnect"}
    first.ask("disconnect")
    client = attached(book, "other", subProcess=True)
    book.wait(1)
    with book.happens():
        child(book, 41).answers()
    book.wait(0.5)
    assert names(client) == ["MainThread", "worker 1"]


def test_released_with_its_rank(play: Play) -> None:
    """Its rank is released: it runs on as well."""
    book, client = play.scene(2, debugging, (1, 41), events=["ranks"])
    with book.quietly("the worker stops"):
        hit(book, child(book, 41))
    client.ask("release", ranks="1")
    book.wait(0.1)
    assert workers(client) == [(0, None, "running"), (1, None, "running")]


def test_its_rank_ends_first(play: Play) -> None:
    """The session is of ranks: a process that outlives them runs on without us."""
    book = play(1)
    debugging(book, (0, 41))
    book.exits(0)
    assert book.finished
    assert not child(book, 41).ended


def test_link_lost_and_back(play: Play) -> None:
    """Only the worker's connection breaks: it is looked for under the same number."""
    book, client = play.scene(1, debugging, (0, 41))
    with book.quietly("its connection breaks"):
        link = book.engine.core.ranks["job", 0, 1].link
        assert link is not None
        book.lose_link(link)
    assert workers(client)[1] == (0, 1, "lost")
    book.wait(1)
    assert workers(client)[1] == (0, 1, "running")


def test_gone_before_we_come(play: Play) -> None:
    """debugpy answers for an unknown child as if all were well, and ends that session."""
    book, client = play.attached(1, subProcess=True)
    with book.happens():
        book.rank(0).children.start(41).ended = True
    book.wait(20)
    assert names(client) == ["MainThread"]


def test_multiprocessings_own(play: Play) -> None:
    """The resource tracker runs nothing of the user's: it is let go."""
    book, client = play.attached(1, subProcess=True)
    with book.happens():
        book.rank(0).children.start(41).data.values["resource_tracker"] = ""
    assert names(client) == ["MainThread"]


def test_focus(play: Play) -> None:
    """Our own `focus` knows workers too."""
    book, client = play.scene(2, debugging, (0, 41))
    with book.quietly("worker and rank 1 stop"):
        hit(book, child(book, 41), book.rank(1))
    assert client.ask("focus", rank=0, worker=1).body["worker"] == 1
    assert client.ask("focus", rank=0, worker=9).refusal == "rank 0 has no worker 9"


def test_start_debugging(play: Play) -> None:
    """The same news as a request; it is answered, and then acted upon."""
    book, client = play.attached(1, subProcess=True)
    with book.happens():
        rank = book.rank(0)
        rank.children.start(41)
        (said,) = [one for one in rank.outbox if one.get("event") == "debugpyAttach"]
        rank.outbox.remove(said)
        configuration = {"request": "attach", "configuration": said["body"]}
        rank.outbox.append(
            {"seq": 99, "type": "request", "command": "startDebugging", "arguments": configuration}
        )
    assert names(client) == ["MainThread", "worker 1"]


def test_a_rank_that_invents_children(play: Play) -> None:
    """A rank's bytes are hostile too: its word alone opens so many connections and no more."""
    book = play(2)
    attached(book, subProcess=True)
    (link,) = (number for number, rank in book.engine.core.links.items() if rank.number == 0)
    opened = 0
    for pid in range(1, MAX_CHILDREN + 100):
        body = {"subProcessId": pid, "connect": {"host": "127.0.0.1", "port": 5678}}
        said = {"seq": pid, "type": "event", "event": "debugpyAttach", "body": body}
        out = book.engine.receive(inputs.LinkSaid(link, decode(json.dumps(said).encode())))
        opened += sum(isinstance(output, outputs.Connect) for output in out)
    assert opened == MAX_CHILDREN
