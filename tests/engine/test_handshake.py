"""The start of a session, in every order that clients use, and its end."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attach, introduce, introduced
from tests.support.scripted.playbook import PATH
from tests.support.scripted.scripted_clients import Client

ATTACH = {"justMyCode": True}
BREAKPOINTS = {"source": {"path": PATH}, "breakpoints": [{"line": LINE}]}


def test_usual_order(play: Play) -> None:
    """Attach, breakpoints, configurationDone: what VS Code, nvim-dap and dape do."""
    book = play(2)
    client = book.client()
    introduce(client, "vscode")
    attaching = client.ask("attach", **ATTACH)
    assert client.of("initialized")
    assert client.ask("setBreakpoints", **BREAKPOINTS).body["breakpoints"][0]["verified"]
    client.ask("setExceptionBreakpoints", filters=["uncaught"])
    assert attaching.response is None
    client.ask("configurationDone")
    assert attaching.body == {}
    book.wait(1)
    assert [row["name"] for row in client.ask("threads").body["threads"]] == ["rank 0", "rank 1"]


def test_one_rank_feels_like_debugpy(play: Play) -> None:
    """With one rank: debugpy's own thread names, its process, no progress."""
    book = play(1)
    client = book.client()
    attach(client)
    book.wait(1)
    assert [row["name"] for row in client.ask("threads").body["threads"]] == ["MainThread"]
    assert client.of("process")[0]["systemProcessId"] == 4000


def test_breakpoints_before_attach(play: Play) -> None:
    """Breakpoints that come before attach wait for the ranks, and bind when these are there."""
    _, client = play.introduced(2)
    early = client.ask("setBreakpoints", **BREAKPOINTS).body["breakpoints"]
    assert not early[0]["verified"]
    client.ask("attach", **ATTACH)
    client.ask("configurationDone")
    changed = client.of("breakpoint")[-1]["breakpoint"]
    assert changed["verified"]
    assert changed["id"] == early[0]["id"]


def test_configuration_done_before_attach(play: Play) -> None:
    """Some clients configure first: attach is answered at once then."""
    _, client = play.introduced(2)
    client.ask("configurationDone")
    assert client.ask("attach", **ATTACH).body == {}
    assert len(client.of("thread")) == 2


def test_attach_awaited_late(play: Play) -> None:
    """A client that looks at other things first gets its answer to attach all the same."""
    book, client = play.introduced(2)
    attaching = client.ask("attach", **ATTACH)
    assert client.ask("threads").body == {"threads": []}
    book.wait(30)
    assert attaching.response is None
    client.ask("configurationDone")
    assert attaching.body == {}


def test_absent_ranks_are_not_waited_for(play: Play) -> None:
    """Rank 1 is not up: attach is answered, it is named, and found when it comes."""
    book = play(2)
    book.absent.add(("job", 1))
    client = book.client()
    attach(client)
    book.wait(2)
    assert "waiting for rank 1" in client.of("output")[-1]["output"]
    book.absent.clear()
    book.know(1)
    book.wait(5)
    assert {body["threadId"] for body in client.of("thread")} == {book.thread(0), book.thread(1)}


def test_a_rank_that_says_when_it_listens(play: Play) -> None:
    """No connection is made to such a rank until then."""
    book = play()
    book.know(0)
    book.know(1, announces=True, ready=False)
    client = book.client()
    attach(client)
    book.wait(2)
    assert len(client.of("thread")) == 1
    book.know(1, announces=True, ready=True)
    assert len(client.of("thread")) == 2


def test_late_rank_gets_breakpoints_before_it_runs_on(play: Play) -> None:
    """A rank that comes later has all breakpoints before its configurationDone."""
    book = play(1)
    client = book.client()
    attach(client)
    book.know(1)
    lines = book.finish().splitlines()
    told = [line.split()[3] for line in lines if line.startswith("rank 1 < ")]
    assert told.index("setBreakpoints") < told.index("configurationDone")


def test_a_rank_runs_on_only_when_its_children_are_seen_to(play: Play) -> None:
    """configurationDone waits until the rank has kept its children out of the debugger."""
    book = play(1)
    client = book.client()
    book.rank(0).silent = {"evaluate"}
    attach(client)
    assert not book.rank(0).configured
    book.answers(0)
    assert book.rank(0).configured


def test_exception_filters_follow_the_patches(play: Play) -> None:
    """An exception within what a rank evaluates before would stop it, and nobody could answer."""
    book = play(1)
    client = book.client()
    book.rank(0).silent = {"evaluate"}
    introduce(client)
    client.ask("attach", **ATTACH)
    client.ask("setExceptionBreakpoints", filters=["raised"])
    client.ask("configurationDone")
    book.answers(0)
    lines = book.finish().splitlines()
    told = [line.split()[2:5] for line in lines if line.startswith("rank 0 ")]
    patched = told.index([">", "evaluate:", "ok"])
    filtered = told.index(["<", "setExceptionBreakpoints", "filters=[raised]"])
    assert patched < filtered < told.index(["<", "configurationDone"])


def test_a_rank_that_evaluates_nothing_runs_on(play: Play) -> None:
    """It has had 5 s; its job is not kept waiting for our comfort."""
    book = play(1)
    client = book.client()
    book.rank(0).silent = {"evaluate"}
    attach(client)
    book.wait(4.9)
    assert not book.rank(0).configured
    book.wait(0.1)
    assert book.rank(0).configured


def test_left_while_it_is_about_to_run_on(play: Play) -> None:
    """It is told to, all the same: a rank that waits for a debugger would wait for the next."""
    book = play(1)
    client = book.client()
    book.rank(0).silent = {"evaluate"}
    attach(client)
    client.ask("disconnect")
    book.wait(1)
    told = [line.split()[3] for line in book.finish().splitlines() if line.startswith("rank 0 < ")]
    assert told.index("configurationDone") < told.index("disconnect")


def test_observer(play: Play) -> None:
    """An observer starts, configures and keeps nothing."""
    book = play(2)
    observer = introduced(book, "observer")
    assert observer.ask("attach", role="observer").body == {}
    assert observer.ask("list").body["counts"]["waiting"] == 2
    assert "observer" in observer.ask("continue", threadId=1).refusal
    assert observer.events == []
    observer.ask("disconnect")


def test_last_client_leaves_and_another_comes(play: Play) -> None:
    """Everybody is released, the session waits, and the next client attaches again."""
    book = play(2)
    first = book.client("first")
    with book.quietly("first has attached, and rank 0 has stopped"):
        attach(first)
        book.rank(0).hits(LINE)
        book.wait(1)
    first.ask("disconnect")
    assert not book.finished
    assert book.rank(0).data.stopped is None
    book.wait(1)
    second = book.client("second")
    attach(second)
    book.wait(1)
    assert len(second.of("thread")) == 2


def test_a_rank_stops_while_it_is_left(play: Play) -> None:
    """A pause lands too late: the next client finds the rank running, and may press continue."""
    book = play(1)
    rank = book.rank(0)
    rank.slow, rank.silent = True, {"disconnect"}
    first = book.client("first")
    attach(first)
    first.ask("pause", threadId=book.thread(0))
    first.ask("disconnect")
    with book.happens():
        rank.arrives()
    with book.happens():
        rank.answers()
    book.wait(1)
    second = book.client("second")
    attach(second)
    second.ask("continue", threadId=book.thread(0))
    assert not rank.dead
    assert [entry["state"] for entry in second.ask("list").body["ranks"]] == ["running"]


def test_last_client_vanishes(play: Play) -> None:
    """A connection that just ends is a leaving too."""
    book = play(2)
    client = book.client()
    with book.quietly("both ranks have stopped"):
        attach(client)
        book.hits(LINE)
        book.wait(1)
    client.vanish()
    book.wait(1)
    assert not any(rank.data.stopped for rank in book.ranks.values())


def test_terminated_once_with_the_exit_code(play: Play) -> None:
    """Only when the last rank is gone; the first failure is the job's code, a signal n 128 + n."""
    book = play(2, owns_job=True)
    client = book.client()
    with book.quietly("both ranks are attached"):
        attach(client)
        book.wait(1)
    book.exits(0)
    book.exited(0, 0)
    assert not client.of("terminated")
    book.exits(1)
    book.exited(1, -9)
    book.wait(5)
    assert client.of("exited") == [{"exitCode": 137}]
    assert len(client.of("terminated")) == 1
    assert book.finished


def _waits_for_rank_1(client: Client) -> None:
    assert not client.of("terminated")
    told = client.of("output")[-1]["output"]
    assert "rank 1 has ended, but not the process: the session waits" in told


def test_not_terminated_while_a_process_of_ours_ends(play: Play) -> None:
    """A rank has said goodbye to its debugger, and writes its model: nobody may end it."""
    book = play(2, owns_job=True)
    client = book.client()
    with book.quietly("both ranks are attached"):
        attach(client)
        book.wait(1)
    book.exits(0, 1)
    book.exited(0, 0)
    book.wait(60)
    assert not book.finished
    _waits_for_rank_1(client)
    book.exited(1, 3)
    assert client.of("exited") == [{"exitCode": 3}]
    assert book.finished


def test_not_terminated_while_a_process_of_this_machine_ends(play: Play) -> None:
    """Both programs are over, and one hangs in an exit hook: `why` can be asked of it."""
    book = play(2)
    for number in range(2):
        book.rank(number).data.process = f"of rank {number}"
        book.runs["job", number] = number == 1
    client = book.client()
    with book.quietly("both ranks are attached"):
        attach(client)
        book.wait(1)
    book.exits(0, 1)
    book.wait(60)
    _waits_for_rank_1(client)
    rows = client.ask("list").body["ranks"]
    reasons = ["the process ended", "its program is over, and its process is not"]
    assert [row["reason"] for row in rows] == reasons
    book.process_ends(1)
    assert len(client.of("terminated")) == 1
    assert book.finished


def test_terminated_where_processes_cannot_be_seen(play: Play) -> None:
    """A process of another machine may be in an exit hook: nobody waits for it."""
    book = play(1)
    book.rank(0).data.process = "of another machine"
    client = book.client()
    with book.quietly("the rank is attached"):
        attach(client)
    book.exits(0)
    assert len(client.of("terminated")) == 1


@pytest.mark.parametrize("owner", [True, False], ids=["owner", "guest"])
def test_terminate(play: Play, owner: bool) -> None:
    """`terminate` ends a job that the session owns, and is refused for any other."""
    book = play(2, owns_job=owner)
    client = book.client()
    with book.quietly("both ranks are attached"):
        attach(client)
    answer = client.ask("terminate")
    assert book.ended_job is owner
    assert answer.response is not None
    assert answer.response["success"] is owner
    client.ask("disconnect", terminateDebuggee=True)
    assert book.ended_job is owner


def test_launch(play: Play) -> None:
    """`launch` is an attach where the session may start or end the job; else it is refused."""
    _, client = play.introduced(1)
    assert "attach configuration" in client.ask("launch", program=PATH).refusal
    owner = play(1, owns_job=True)
    client = owner.client()
    introduce(client)
    launching = client.ask("launch", request="launch", program=PATH)
    client.ask("configurationDone")
    assert launching.body == {}
    client.ask("disconnect")
    assert owner.ended_job


def test_initialize_comes_first(play: Play) -> None:
    """Whoever says something else first is not a debug client: told so, and closed unheard."""
    book = play(1)
    client = book.client()
    assert client.ask("threads").refusal == "the first request must be `initialize`"
    assert client.closed


def test_initialize_once(play: Play) -> None:
    """A second initialize, and a second attach, are refused."""
    book = play(1)
    client = book.client()
    attach(client)
    assert "already" in client.ask("initialize", adapterID="debugpy").refusal
    assert "already" in client.ask("attach", **ATTACH).refusal
