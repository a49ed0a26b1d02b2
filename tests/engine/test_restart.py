"""`restart`: of a job that the client has launched, and of an editor that attaches again."""

from __future__ import annotations

import json

import pytest

from dap_mux.engine import Settings, inputs
from dap_mux.pure.remote import REPLAY_PLACE
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, introduced, states


def test_restart(play: Play) -> None:
    """`restart`: the same rows and breakpoints over new processes; the session does not end."""
    book, client = play.attached(2, command="launch", settings={"owns_job": True})
    assert client.of("capabilities")[-1] == {"capabilities": {"supportsRestartRequest": True}}
    book.hits(LINE, 1)
    assert client.ask("restart").body == {}
    assert "already" in client.ask("restart").refusal
    for number in range(2):
        book.exits(number)
        book.exited(number, -15)
        book.rank(number).last_breakpoints = []
    book.wait(3)
    assert client.of("terminated") == []
    for number in range(2):
        book.know(number, ready=False, announces=True)
    book.feed(inputs.JobRestarted())
    assert states(client) == ["waiting", "waiting"]
    for number in range(2):
        book.know(number, pid=4711 + number)
    book.wait(1)
    assert states(client) == ["running", "running"]
    assert book.rank(0).last_breakpoints
    threads = [body["threadId"] for body in client.of("thread") if body["reason"] == "started"]
    assert threads[-2:] == [book.thread(0), book.thread(1)]
    assert len(client.of("initialized")) == 1


def test_restart_that_fails(play: Play) -> None:
    """The program is gone meanwhile: the session says so, and ends."""
    book, client = play.attached(1, command="launch", settings={"owns_job": True})
    assert client.ask("restart").body == {}
    book.exits(0)
    book.exited(0, -15)
    book.feed(inputs.JobRestarted("cannot start rank 0: python: no such file"))
    book.pump()
    assert "cannot start rank 0" in client.of("output")[-1]["output"]
    assert len(client.of("terminated")) == 1
    assert book.finished


@pytest.mark.parametrize("owns_job", [True, False])
def test_restart_of_a_guest(play: Play, owns_job: bool) -> None:
    """A client that did not launch the job cannot restart it: Restart is beside Continue."""
    _, client = play.attached(2, settings={"owns_job": owns_job})
    assert "this client has launched" in client.ask("restart").refusal
    assert not any("supportsRestartRequest" in str(body) for body in client.of("capabilities"))


class TestOfAnAttachedEditor:
    """`disconnect` with `restart`: it attaches again at once, and the job waits for it as it is."""

    def test_ranks_stay_as_they_are(self, play: Play) -> None:
        """The stopped one stays stopped, and is shown to whoever comes back.

        VS Code also says `terminateDebuggee`, of a job that it could not start again.
        """
        book, client = play.attached(2, settings={"owns_job": True})
        book.hits(LINE, 0)
        client.ask("disconnect", restart=True, terminateDebuggee=True)
        book.wait(3)
        assert book.rank(0).data.stopped
        again = attached(book, "again")
        assert [one["state"] for one in again.ask("list").body["ranks"]] == ["stopped", "running"]
        book.wait(30)
        assert book.rank(0).data.stopped
        assert book.rank(0).last_breakpoints == [{"line": LINE}]

    def test_nobody_comes_back(self, play: Play) -> None:
        """After some seconds it is as if it had left for good."""
        book, client = play.attached(2)
        book.hits(LINE, 0)
        client.ask("disconnect", restart=True)
        book.wait(30)
        assert not book.rank(0).data.stopped
        assert book.rank(0).last_breakpoints == []
        assert [rank.phase.name for rank in book.engine.core.ranks.values()] == ["IDLE"] * 2


class TestOfAReplay:
    """One rank is run anew, by whatever client, to a place: back is the call before."""

    def test_back_and_forth(self, play: Play) -> None:
        """Back from within or behind a call, and to a step; any client of the session may."""
        book, client = play.attached(1, settings={"owns_job": True, "replays": True})
        assert "running: pause it" in client.ask("stepBack", threadId=book.thread(0)).refusal
        book.hits(LINE, 0)
        book.rank(0).data.values[REPLAY_PLACE] = json.dumps({"before": 7})
        assert client.ask("stepBack", threadId=book.thread(0)).body == {}
        assert "already" in client.ask("restart", to="call:3").refusal
        book.exits(0)
        book.exited(0, -15)
        book.know(0, ready=False, announces=True)
        book.feed(inputs.JobRestarted())
        book.know(0, pid=4711)
        book.wait(1)
        assert states(client) == ["running"]
        assert client.ask("restart", to="step 3").body == {}
        assert client.of("terminated") == []

    def test_at_its_beginning(self, play: Play) -> None:
        """No call comes before the first one, and a place must be one."""
        book, client = play.attached(1, settings={"owns_job": True, "replays": True})
        assert book.engine.capabilities.now()["supportsStepBack"]
        book.hits(LINE, 0)
        book.rank(0).data.values[REPLAY_PLACE] = json.dumps({"before": 0})
        refusal = client.ask("reverseContinue", threadId=book.thread(0)).refusal
        assert "no call comes before" in refusal
        assert "must be a step, call N" in client.ask("restart", to="train.py:3").refusal

    def test_of_another_job(self, play: Play) -> None:
        """It has no places."""
        client = attached(play(1, owns_job=True), command="launch")
        assert "only in a replay" in client.ask("restart", to="call:3").refusal

    def test_a_second_client_before_its_rank_speaks(self, play: Play) -> None:
        """The first is told of steps back, though what the second is offered has them already."""
        book = play(1, ranks_from_client=True)
        first = introduced(book, "first")
        book.feed(inputs.RanksFound(0, "", Settings(owns_job=True, replays=True)))
        introduced(book, "second")
        book.pump()
        (told,) = first.of("capabilities")
        assert told["capabilities"]["supportsStepBack"]
