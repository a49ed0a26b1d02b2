"""Ranks come and go; many of them at once; how they are shown."""

from __future__ import annotations

from typing import Final

import pytest

from dap_mux.pure.endpoint import Traits
from tests.engine.conftest import Play
from tests.engine.scenes import (
    LINE,
    all_stopped,
    attach,
    attached,
    editing,
    introduce,
    introduced,
    states,
    stopped,
)
from tests.support.fake_rank.rank import FakeRank
from tests.support.scripted.playbook import Playbook

AWAITS: Final = Traits(awaits_debugger=True)


def test_killed(play: Play) -> None:
    """A rank's process is killed: its row goes at once, the rest step on."""
    book = play(3, owns_job=True)
    client = stopped(book)
    book.lose(2, "connection reset")
    assert client.of("thread")[-1] == {"reason": "exited", "threadId": book.thread(2)}
    book.exited(2, -9)
    client.ask("next", threadId=book.thread(0))
    book.wait(0.1)
    assert client.of("stopped")[-1]["reason"] == "step"
    assert states(client) == ["stopped", "stopped", "exited"]


def test_lost_and_back(play: Play) -> None:
    """A lost connection comes back under the same thread id, and old handles stay dead."""
    book, client = play.stopped(2)
    stack = client.ask("stackTrace", threadId=book.thread(1)).body["stackFrames"]
    book.lose(1)
    assert states(client) == ["stopped", "lost"]
    book.wait(2)
    assert states(client) == ["stopped", "running"]
    assert "is gone" in client.ask("scopes", frameId=stack[0]["id"]).refusal
    assert client.of("thread")[-1] == {"reason": "started", "threadId": book.thread(1)}


def test_already_being_debugged(play: Play) -> None:
    """Another client holds the rank: asked again for at least 60 s."""
    book = play(2)
    book.rank(1).refuses["attach"] = "already being debugged"
    client = book.client()
    attach(client)
    book.wait_quietly(60, "a minute passes")
    assert states(client)[0] == "running"
    assert "already being debugged" in str(client.ask("list", ranks="1").body)
    book.rank(1).refuses.clear()
    book.wait_quietly(11, "and ten seconds more, now that it is free")
    assert states(client) == ["running", "running"]


def test_lost_while_stopped_and_taken_for_debugged(play: Play) -> None:
    """Debugpy does not know yet that the link broke: lost, and why, until it is attached again."""
    book, client = play.stopped(2)
    book.rank(1).refuses["attach"] = "Server[pid=7] is already being debugged."
    book.lose(1, "connection lost: nothing that was sent is acknowledged since 12 s")
    for _ in range(3):
        (entry,) = client.ask("list", ranks="1").body["ranks"]
        assert entry["state"] == "lost"
        assert "acknowledged" in entry["reason"] or "retrying until it is free" in entry["reason"]
        book.wait_quietly(5, "five seconds pass")
    book.rank(1).refuses.clear()
    book.wait_quietly(11, "and ten seconds more, now that it is free")
    assert states(client) == ["stopped", "running"]
    (entry,) = client.ask("list", ranks="1").body["ranks"]
    assert entry["reason"] is None
    assert len(client.of("initialized")) == 1


def test_nobody_listens_any_more(play: Play) -> None:
    """A tunnel that is down is told from a rank that has not started yet."""
    book, client = play.attached(2)
    book.absent.add(("job", 1))
    book.lose(1, "the rank closed the connection")
    book.wait_quietly(3, "some tries")
    (entry,) = client.ask("list", ranks="1").body["ranks"]
    assert entry["state"] == "lost"
    assert "the tunnel to it is down" in entry["reason"]


def test_started_again_by_hand_between_two_clients(play: Play) -> None:
    """The process that was met has ended; the next client waits for the one that is to come."""
    book = play(1)
    book.rank(0).data.process = "the first"
    first = attached(book)
    first.ask("disconnect")
    book.wait(1)
    book.absent.add(("job", 0))
    book.over.add(("job", 0))
    second = book.client("second")
    attach(second)
    assert states(second) == ["waiting"]
    book.absent.clear()
    book.wait_quietly(3, "the next try")
    assert states(second) == ["running"]


def test_nobody_is_left_to_say_that_it_ended(play: Play) -> None:
    """Its adapter had died before it; this machine's own word is that the process is over."""
    book = play(2)
    book.rank(1).data.process = "the one"
    client = attached(book)
    book.absent.add(("job", 1))
    book.lose(1, "the rank closed the connection")
    book.wait_quietly(3, "some tries")
    assert states(client) == ["running", "lost"]
    book.over.add(("job", 1))
    book.wait_quietly(3, "the next try")
    assert states(client) == ["running", "exited"]


def test_backoff(play: Play) -> None:
    """Retries are 0.25 s apart at first, doubling to 10 s."""
    book = play(2)
    book.absent.add(("job", 1))
    client = book.client()
    with book.quietly("rank 0 is attached"):
        attach(client)
    book.wait(30)
    tries = [line for line in book.transcript.text().splitlines() if line == "rank 1 = refused"]
    assert 5 <= len(tries) <= 12


def test_a_line_that_breaks_again_and_again(play: Play) -> None:
    """It works in between: tried at once each time, and not ever less often."""
    book, client = play.attached(2)
    book.rank(1).silent.add("attach")
    with book.quietly("it breaks twelve times while its rank is attached again"):
        for _ in range(12):
            book.lose(1)
            book.wait(1)
    book.rank(1).silent.clear()
    book.lose(1)
    book.wait_quietly(1, "then it holds")
    assert states(client) == ["running", "running"]


def test_a_line_that_breaks_before_its_rank_is_attached(play: Play) -> None:
    """As of a tunnel to somewhere that is not ready: tried ever less often, and told of so."""
    book = play(2)
    book.rank(1).silent.add("attach")
    client = book.client()
    with book.quietly("rank 0 is attached"):
        attach(client)
    with book.quietly("what rank 1 has answered is not worth much"):
        for _ in range(60):
            book.lose(1)
            book.wait(0.5)
    book.lose(1)
    book.wait(5)
    tries = book.transcript.text().count("rank 1 < initialize")
    assert tries <= 1


def test_a_line_that_was_down_twice_as_we_tried(play: Play) -> None:
    """A rank that was attached is tried every second, for half a minute."""
    book, client = play.attached(2)
    book.absent.add(("job", 1))
    with book.quietly("nobody listens for twenty seconds"):
        book.lose(1)
        book.wait(20)
    book.absent.clear()
    book.wait_quietly(1.1, "then somebody does")
    assert states(client) == ["running", "running"]


def test_no_answer_to_configuration_done(play: Play) -> None:
    """A rank that is never attached, on a line that never breaks: given up, and tried again."""
    book = play(2)
    book.rank(1).silent.add("configurationDone")
    client = book.client()
    attach(client)
    book.wait_quietly(59, "nearly a minute passes")
    book.rank(1).silent.clear()
    assert states(client) == ["running", "connecting"]
    book.wait_quietly(3, "and a little more")
    assert states(client) == ["running", "running"]


def test_elastic_restart(play: Play) -> None:
    """A rank that ended comes back as a new process: same thread id, breakpoints replayed."""
    book, client = play.attached(2)
    book.exits(1)
    book.rank(1).last_breakpoints = []
    book.know(1, pid=4711)
    book.wait(1)
    assert book.rank(1).last_breakpoints
    started = [b for b in client.of("thread") if b["reason"] == "started"]
    assert started[-1]["threadId"] == book.thread(1)


def test_adapter_that_is_not_ready(play: Play) -> None:
    """`attach` waits until the adapter is connected to its debuggee, or for 3 s."""
    book = play()
    for number in range(2):
        book.know(number, ready=False).met = False
    client = introduced(book)
    client.ask("attach", justMyCode=True)
    client.ask("configurationDone")
    assert book.rank(0).attached_with is None
    with book.happens():
        book.rank(0).met = True
        book.rank(0).sockets()
    assert book.rank(0).attached_with is not None
    assert book.rank(1).attached_with is None
    book.wait(3)
    assert book.rank(1).attached_with is not None


def test_exit_code_of_a_guest(play: Play) -> None:
    """Where nobody saw the ranks end there is no `exited`: no code is better than a wrong one."""
    book, client = play.attached(2)
    book.exits()
    assert client.of("exited") == []
    assert len(client.of("terminated")) == 1


def test_progress(play: Play) -> None:
    """Attaching that takes longer than half a second is shown, to clients that can."""
    book = play(3)
    book.rank(2).silent = {"attach"}
    client = book.client()
    introduce(client, supportsProgressReporting=True)
    client.ask("attach", justMyCode=True)
    client.ask("configurationDone")
    book.wait(0.8)
    assert client.of("progressStart")[0]["title"] == "Attaching to 3 ranks"
    assert client.of("progressUpdate")[-1]["message"] == "2 of 3 attached"
    book.answers(2)
    book.wait(0.5)
    assert client.of("progressEnd")[0]["message"] == "3 of 3 attached"


def test_no_progress_for_those_who_cannot(play: Play) -> None:
    """The same, unseen."""
    book = play(2)
    book.rank(1).silent = {"attach"}
    client = introduced(book)
    client.ask("attach", justMyCode=True)
    client.ask("configurationDone")
    book.wait(1)
    assert client.of("progressStart") == []


def test_capabilities_are_what_all_offer(play: Play) -> None:
    """One rank without log points: the clients are told once."""
    book = play(2)
    del book.rank(1).capabilities["supportsLogPoints"]
    client = attached(book)
    assert client.of("capabilities") == [{"capabilities": {"supportsLogPoints": False}}]
    introduced(book, "second")


def test_two_groups(play: Play) -> None:
    """Two meshes may both have a rank 0: their names tell them apart."""
    book = play()
    for group in ("trainer", "eval"):
        for number in range(2):
            book.know(number, group)
    client = attached(book)
    names = [row["name"] for row in client.ask("threads").body["threads"]]
    assert set(names) == {"rank 0 @trainer", "rank 1 @trainer", "rank 0 @eval", "rank 1 @eval"}
    with book.happens():
        book.rank(0, "eval").hits(LINE)
    book.wait(0.1)
    assert client.ask("focus", rank=0, group="eval").body["group"] == "eval"


def test_output_of_two_groups(play: Play) -> None:
    """Prefixes say the group."""
    book = play()
    book.know(0, "trainer")
    book.know(0, "eval")
    client = attached(book)
    with book.happens():
        for rank in book.ranks.values():
            rank.prints("hello\n")
    book.wait(0.2)
    (body,) = client.of("output")
    assert body["output"] in ("[eval:0; trainer:0] hello\n", "[trainer:0; eval:0] hello\n")


def test_auto_view_above_64(rehearse: Play) -> None:
    """65 ranks are shown by class, 64 one by one."""
    for count, rows in ((64, 64), (65, 3)):
        book, client = rehearse.attached(count)
        all_stopped(book, LINE, *range(1, count))
        assert len(client.ask("threads").body["threads"]) == rows


def test_class_ids_survive_regrouping(play: Play) -> None:
    """A class's thread id is its focused or first member's, in every stop."""
    book = play(5, view="classes")
    client = stopped(book)
    before = client.ask("threads").body["threads"]
    for row in before[:1]:
        client.ask("stackTrace", threadId=row["id"])
    client.ask("next", threadId=before[0]["id"])
    book.wait(0.2)
    after = client.ask("threads").body["threads"]
    assert [row["id"] for row in after] == [row["id"] for row in before]
    assert "train.py:7" in after[1]["name"]


def test_vscode_sees_classes(play: Play) -> None:
    """One row a class, five requests a stop, and a step keeps the line."""
    book = play(6, view="classes")
    client = editing(book, "vscode")
    with book.happens():
        for number in range(1, 6):
            book.rank(number).hits(LINE)
    book.wait(0.6)
    rows = dict(client.editor.threads.values())
    assert rows == {
        "rank 1 · train.py:6": "stopped",
        "rank 0 · running": "running",
        "4 × train.py:6 · ranks 2-5": "stopped",
    }
    client.press(client.editor.press_f10())
    book.wait(0.6)
    assert client.editor.arrow == (book.thread(1), LINE + 1)


def test_ranks_that_come_after_the_last_client_has_left(play: Play) -> None:
    """They wait for nobody: let run on, also at a second attempt, and only once."""
    book = play()
    book.know(0, traits=AWAITS)
    client = attached(book)
    client.ask("disconnect")
    book.note("rank 1 comes, rank 2 is not reached at once")
    book.know(1, traits=AWAITS)
    book.absent.add(("job", 2))
    book.know(2, traits=AWAITS, ready=False)
    book.wait(0.2)
    assert configured(book, 1) == 1
    book.absent.clear()
    book.wait_quietly(15, "time passes")
    book.note("rank 1 calls again")
    book.know(1, traits=AWAITS)
    book.wait(5)
    assert [configured(book, number) for number in range(3)] == [1, 1, 1]
    with book.quietly("the next client"):
        attach(second := book.client("second"))
    assert states(second) == ["running"] * 3


@pytest.mark.parametrize("silent", ["attach", "configurationDone", ""])
def test_the_last_client_leaves_while_ranks_come(play: Play, silent: str) -> None:
    """Wherever their handshake is, also where it waits for the client: it goes on to its end."""
    book = play()
    with book.quietly("a client that has not configured" if not silent else "a client"):
        client = introduced(book)
        client.ask("attach", justMyCode=True)
        if silent:
            client.ask("configurationDone")
    book.know(7)
    rank = book.ranks["job", 0] = FakeRank(0)
    rank.silent = {silent}
    book.know(0, traits=AWAITS)
    client.ask("disconnect")
    book.note("it answers again")
    rank.silent = set()
    book.lose(0)
    rank.heard.clear()
    book.wait(3)
    assert "configurationDone" in rank.heard or not silent
    assert not rank.configured


def test_a_rank_whose_user_asked_for_a_wait_waits(play: Play) -> None:
    """The session's last client has left: the next one is waited for, as the rank's user said."""
    book = play()
    book.know(0)
    client = attached(book)
    client.ask("disconnect")
    rank = book.know(1)
    book.wait(5)
    assert not rank.heard


def test_before_the_first_client_ranks_are_held(play: Play) -> None:
    """A session that nobody has come to yet lets no rank run on."""
    book = play()
    book.know(0, traits=AWAITS)
    book.wait(60)
    assert configured(book, 0) == 0


def configured(book: Playbook, number: int) -> int:
    """How often a rank was told to run on."""
    return book.rank(number).heard.count("configurationDone")


def test_a_rank_is_released_before_it_has_started(play: Play) -> None:
    """It is told to run on: its wait for a debugger would never end."""
    book = play(1)
    client = book.client()
    with book.quietly("attached, and not configured"):
        introduce(client)
        client.send("attach", justMyCode=True)
        book.pump()
    client.ask("release", ranks="0")
    assert "rank 0 < configurationDone" in book.transcript.text()
    client.ask("configurationDone")
