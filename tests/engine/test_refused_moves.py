"""What ranks were told is not what they did: a step that waits, and a request that is refused."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, states, stopped_ranks, told_by_us
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client


def threads_stand(book: Playbook) -> Client:
    """One rank with two threads, stopped in the second; a step lets no other thread run."""
    client = attached(book, kind="vscode", steppingResumesAllThreads=False)
    rank = book.rank(0)
    for number in (2, 3):
        rank.data.threads[number] = f"Thread-{number}"
        rank.event("thread", reason="started", threadId=number)
    book.pump()
    rank.stops("breakpoint", LINE, thread=2)
    book.pump()
    book.wait(0.6)
    return client


def row(client: Client, name: str) -> int:
    rows = client.ask("threads").body["threads"]
    return next(int(one["id"]) for one in rows if one["name"] == name)


class TestStepThatHoldsThreads:
    """With `steppingResumesAllThreads: false` a step may wait for a thread that stands."""

    def test_continue_is_not_swallowed(self, rehearse: Play) -> None:
        """It is what ends the waiting, so it goes to the rank at once."""
        book, client = rehearse.scene(1, threads_stand)
        book.rank(0).slow = True
        client.ask("stepOut", threadId=row(client, "Thread-2"))
        book.wait(1)
        assert book.rank(0).due == "stepOut"
        client.ask("continue", threadId=row(client, "Thread-2"))
        assert book.rank(0).due is None
        assert not book.rank(0).dead
        assert states(client) == ["running"]

    def test_a_step_that_ends_as_it_is_continued(self, rehearse: Play) -> None:
        """Its stop crosses the continue: the rank is seen to stop, and to run on."""
        book, client = rehearse.scene(1, threads_stand)
        book.rank(0).slow = True
        client.ask("stepOut", threadId=row(client, "Thread-2"))
        book.rank(0).arrives()
        client.send("continue", threadId=row(client, "Thread-2"))
        book.pump()
        book.wait(1)
        assert stopped_ranks(book) == []
        assert states(client) == ["running"]

    def test_in_every_rank_of_a_class(self, rehearse: Play) -> None:
        """So it is of several ranks, of which one has not arrived."""
        book, client = rehearse.stopped(3, steppingResumesAllThreads=False)
        book.rank(2).slow = True
        client.ask("next", threadId=book.thread(0))
        book.wait(1)
        assert states(client) == ["stopped", "stopped", "running"]
        client.ask("continue", threadId=book.thread(0))
        book.wait(1)
        assert book.rank(2).due is None
        assert not book.rank(2).dead
        assert states(client) == ["running"] * 3

    def test_the_other_thread_may_step_meanwhile(self, rehearse: Play) -> None:
        """That is the other way to end the waiting; each step is told of its own thread."""
        book, client = rehearse.scene(1, threads_stand)
        book.rank(0).slow = True
        second, third = row(client, "Thread-2"), row(client, "Thread-3")
        client.ask("stepOut", threadId=second)
        assert client.of("continued")[-1] == {"threadId": second, "allThreadsContinued": True}
        assert client.ask("stepOut", threadId=third).body == {}
        assert client.of("continued")[-1] == {"threadId": third, "allThreadsContinued": False}
        assert client.ask("stepOut", threadId=third).body == {}  # the key is held: dropped
        book.arrives(0)
        book.wait(0.6)
        assert states(client) == ["stopped"]


class TestRefusals:
    """debugpy says no after we have said yes: the ranks stand, and are shown so."""

    @pytest.mark.parametrize("command", ["next", "stepIn", "stepOut", "continue"])
    def test_the_state_is_restored(self, command: str, rehearse: Play) -> None:
        """All of the class is stopped as before, and what is asked next is not swallowed."""
        book, client = rehearse.stopped(3)
        for rank in book.ranks.values():
            rank.refuses = {command: "Wrong ID sent from the client: 77"}
        client.ask(command, threadId=book.thread(0))
        book.wait(0.6)
        assert states(client) == ["stopped"] * 3
        assert client.of("stopped")[-1]["allThreadsStopped"]
        why = f"dap-mux: ranks 0-2 refused '{command}': Wrong ID sent from the client: 77\n"
        assert told_by_us(client) == [why]
        for rank in book.ranks.values():
            rank.refuses = {}
        client.ask("next", threadId=book.thread(0))
        client.ask("continue", threadId=book.thread(0))
        book.wait(0.6)
        assert stopped_ranks(book) == []
        assert states(client) == ["running"] * 3

    def test_one_of_a_class(self, rehearse: Play) -> None:
        """The others step; the one that refused is not waited for."""
        book, client = rehearse.stopped(3)
        book.rank(2).refuses = {"next": "no"}
        client.ask("next", threadId=book.thread(0))
        book.wait(0.6)
        assert [rank.program.line for rank in book.ranks.values()] == [LINE + 1, LINE + 1, LINE]
        assert states(client) == ["stopped"] * 3
        assert "rank 2 refused 'next': no" in told_by_us(client)[-1]
        client.ask("continue", threadId=book.thread(0))
        assert stopped_ranks(book) == []

    def test_without_a_reason(self, rehearse: Play) -> None:
        """That is said too."""
        book, client = rehearse.stopped(1)
        book.rank(0).refuses = {"stepIn": ""}
        client.ask("stepIn", threadId=book.thread(0))
        book.wait(0.6)
        assert "debugpy refused it and gave no reason" in told_by_us(client)[-1]
        assert states(client) == ["stopped"]

    def test_a_late_one_that_refuses_to_follow(self, rehearse: Play) -> None:
        """It stands where it arrived, and the next continue takes it along."""
        book, client = rehearse.stopped(2)
        late = book.rank(1)
        late.slow = True
        client.ask("next", threadId=book.thread(0))
        book.wait(0.7)
        client.ask("next", threadId=book.thread(0))
        late.refuses = {"next": "no"}
        with book.happens():
            late.arrives()
        book.wait(0.7)
        assert states(client) == ["stopped"] * 2
        client.ask("continue", threadId=book.thread(0))
        assert stopped_ranks(book) == []

    def test_a_pause(self, rehearse: Play) -> None:
        """The rank runs on, the client is told why, and may pause it again."""
        book, client = rehearse.attached(1)
        book.rank(0).refuses = {"pause": "not now"}
        client.ask("pause", threadId=book.thread(0))
        book.wait(0.1)
        assert told_by_us(client) == ["dap-mux: rank 0 refused 'pause': not now\n"]
        assert states(client) == ["running"]
        book.rank(0).refuses = {}
        client.ask("pause", threadId=book.thread(0))
        assert stopped_ranks(book) == [0]

    def test_a_rank_that_is_lost_meanwhile(self, rehearse: Play) -> None:
        """There is nothing to restore."""
        book, client = rehearse.stopped(2)
        book.rank(1).silent = {"next"}
        client.ask("next", threadId=book.thread(0))
        book.lose(1)
        book.wait(0.1)
        assert states(client)[0] == "stopped"
        assert told_by_us(client) == []


class TestTheWordOfTheConsole:
    def test_a_refused_step_is_answered_and_restored(self, rehearse: Play) -> None:
        """`cast ... n` has its own answer."""
        book, client = rehearse.stopped(2)
        for rank in book.ranks.values():
            rank.refuses = {"next": "no"}
        body = client.ask("cast", ranks="all", command="n").body
        assert body["errors"] == [{"ranks": "0-1", "message": "no"}]
        book.wait(0.6)
        assert states(client) == ["stopped"] * 2
        assert told_by_us(client) == []
