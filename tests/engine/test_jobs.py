"""Ranks that others start: the ways to them, and when their job is over."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

import pytest

from dap_mux.engine import inputs
from tests.engine.conftest import Play
from tests.engine.scenes import attach, attached, states, told_by_us
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client


def refused(book: Playbook, number: int) -> int:
    """How often a rank was tried in vain."""
    return book.transcript.text().splitlines().count(f"rank {number} = refused")


def reason(client: Client, number: int) -> str | None:
    """Why a rank is not there, as `list` says."""
    (entry,) = client.ask("list", ranks=str(number)).body["ranks"]
    assert entry["reason"] is None or isinstance(entry["reason"], str)
    return entry["reason"]


def test_no_way_to_a_rank_yet(play: Play) -> None:
    """No connection is tried while the rank is known to be out of reach; `list` says why."""
    book = play(1)
    book.know(1, way_down="trainer-1 is Pending")
    client = book.client()
    attach(client)
    book.wait(60)
    assert states(client) == ["running", "waiting"]
    assert reason(client, 1) == "trainer-1 is Pending"
    book.know(1)
    assert states(client) == ["running", "running"]
    assert reason(client, 1) is None


def test_the_way_is_down_and_up_again(play: Play) -> None:
    """A tunnel breaks: not tried while it is down, and at once when it is back."""
    book, client = play.attached(2)
    down = "the tunnel to trainer-1 is down: lost connection to pod"
    book.absent.add(("job", 1))
    book.know(1, way_down=down)
    book.lose(1, "the rank closed the connection")
    book.wait(60)
    assert refused(book, 1) == 0
    assert (states(client), reason(client, 1)) == (["running", "lost"], down)
    book.absent.clear()
    book.rank(1).last_breakpoints = []
    book.know(1)
    assert states(client) == ["running", "running"]
    assert book.rank(1).last_breakpoints
    assert len(client.of("initialized")) == 1


def test_the_way_is_seen_to_be_down_only_after_it_broke(play: Play) -> None:
    """The connection ends before the tunnel says so: the next try waits for its word."""
    book, client = play.attached(2)
    book.absent.add(("job", 1))
    book.lose(1)
    book.wait(20)
    before = refused(book, 1)
    assert before > 0
    book.know(1, way_down="the tunnel is down")
    assert reason(client, 1) == "the tunnel is down"
    book.wait_quietly(60, "a minute passes")
    assert refused(book, 1) == before
    book.absent.clear()
    book.know(1)
    assert states(client) == ["running", "running"]


def test_a_pod_starts_again(play: Play) -> None:
    """Another incarnation of a rank that ended is another process: waited for, then attached."""
    book = play(1)
    book.know(1, ready=False, incarnation="pod-1/0")
    client = attached(book)
    book.exits(1)
    book.know(1, ready=False, incarnation="pod-1/0")
    assert states(client) == ["running", "exited"]
    book.know(1, ready=False, incarnation="pod-1/1", way_down="trainer-1: CrashLoopBackOff")
    assert (states(client), reason(client, 1)) == (
        ["running", "waiting"],
        "trainer-1: CrashLoopBackOff",
    )
    book.know(1, ready=False, incarnation="pod-1/1")
    assert states(client) == ["running", "running"]


def test_a_pod_that_is_deleted(play: Play) -> None:
    """Its rank's debugger tells the end before the cluster tells of the pod, after it, or never."""
    down = "pod trainer-1 was deleted; perhaps another is made in its place"
    book, client = play.attached(3)
    book.exits(1)
    assert (states(client)[1], reason(client, 1)) == ("exited", "the process ended")
    book.know(1, way_down=down)
    assert (states(client)[1], reason(client, 1)) == ("exited", down)
    book.know(2, way_down=down)
    book.exits(2)
    assert (states(client)[2], reason(client, 2)) == ("exited", down)
    book.lose(0)
    book.know(0, way_down=down)
    assert (states(client), reason(client, 0)) == (["lost", "exited", "exited"], down)


def test_the_end_that_nobody_saw_the_code_of(play: Play) -> None:
    """A pod is no more: its rank is gone, and no code is made up."""
    book, client = play.attached(2)
    book.exited(1, None)
    book.wait(2)
    assert states(client) == ["running", "exited"]
    book.lose(0)
    book.exited(0, None)
    assert client.of("exited") == []
    assert len(client.of("terminated")) == 1


def test_a_job_that_loses_all_its_ranks_and_comes_back(play: Play) -> None:
    """Requeued by its scheduler: the session waits until that says that the job is over."""
    book = play(1, lingers=inf)
    book.know(0, ready=False, incarnation="first")
    client = attached(book)
    book.exits(0)
    book.wait(9)
    assert not any("waits for ranks" in each for each in told_by_us(client))
    book.wait(2)
    assert len([each for each in told_by_us(client) if "waits for ranks" in each]) == 1
    assert states(client) == ["exited"]
    assert client.of("terminated") == []
    book.know(0, ready=False, incarnation="first", way_down="job 12 waits in the queue")
    book.know(0, ready=False, incarnation="second")
    assert states(client) == ["running"]
    book.exited(0, None)
    book.wait(2)
    assert client.of("terminated") == []
    book.feed(inputs.JobEnded(None))
    book.pump()
    assert client.of("exited") == []
    assert len(client.of("terminated")) == 1


def test_ranks_that_end_where_containers_start_again(play: Play) -> None:
    """The session waits a while; longer, where the rank's place says that it comes back."""
    book, client = play.attached(1, settings={"lingers": 10})
    book.exits(0)
    book.know(0, ready=False, way_down="pod t-0 does not run now: CrashLoopBackOff")
    book.wait(11)
    assert len([each for each in told_by_us(client) if "waits for ranks" in each]) == 1
    book.know(0, ready=False, incarnation="second")
    assert states(client) == ["running"]
    book.exits(0)
    book.wait(9)
    assert client.of("terminated") == []
    book.wait(2)
    assert len(client.of("terminated")) == 1


def _exits(book: Playbook) -> None:
    book.exits(0)


def _dies(book: Playbook) -> None:
    book.runs["job", 0] = False
    book.lose(0)


OLD_ENDS: Final[dict[str, Callable[[Playbook], None]]] = {
    "its debugger says so": _exits,
    "its connection breaks": lambda book: book.lose(0),
    "its connection breaks and its process is seen to end": _dies,
}


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("how", OLD_ENDS)
def test_a_pod_starts_again_before_its_old_end_is_seen(play: Play, how: str, way: str) -> None:
    """The cluster is faster than the connection to what ran there before."""
    book = play(1, lingers=10)
    book.know(0, ready=False, incarnation="first")
    client = attached(book)
    down = "pod t-0 is Pending" if way == "down" else ""
    book.know(0, ready=False, incarnation="second", way_down=down)
    OLD_ENDS[how](book)
    book.runs.clear()
    book.wait(5)
    book.know(0, ready=False, incarnation="second")
    book.wait(15)
    assert states(client) == ["running"]
    assert client.of("terminated") == []
    book.exited(0, None)
    book.feed(inputs.JobEnded(None))
    book.wait(2)
    assert len(client.of("terminated")) == 1


def test_a_lost_rank_s_pod_starts_again_before_its_process_is_seen_to_end(play: Play) -> None:
    """What becomes of the old process is nothing to the new one."""
    book = play(1, lingers=10)
    book.know(0, ready=False, incarnation="first")
    client = attached(book)
    book.runs["job", 0] = True
    book.lose(0)
    book.know(0, ready=False, incarnation="second", way_down="pod t-0 is Pending")
    assert states(client) == ["waiting"]
    book.process_ends(0)
    book.wait(15)
    assert client.of("terminated") == []
    book.know(0, ready=False, incarnation="second")
    assert states(client) == ["running"]


def test_each_end_of_all_ranks_is_waited_out_anew(play: Play) -> None:
    """A container that fails at once, again and again: each time there is time for the next."""
    book, client = play.attached(1, settings={"lingers": 10})
    book.exits(0)
    book.wait(5)
    book.know(0, ready=False, incarnation="second")
    assert states(client) == ["running"]
    book.exits(0)
    book.wait(6)  # eleven since the first end
    assert client.of("terminated") == []
    book.wait(5)
    assert len(client.of("terminated")) == 1


def test_a_launcher_starts_a_rank_again_before_its_old_end_is_seen(play: Play) -> None:
    """Another pid: the old process has ended, whatever its connection still says."""
    book = play(1, lingers=inf)
    book.know(0, pid=4000)
    client = attached(book)
    book.exited(0, None)
    book.know(0, pid=4001)
    assert states(client) == ["running"]
    book.wait(2)  # the end that was seen was the old one's
    assert states(client) == ["running"]
    assert client.of("terminated") == []
    book.exited(0, None)
    book.feed(inputs.JobEnded(3))
    book.wait(2)
    assert client.of("exited") == [{"exitCode": 3}]
    assert len(client.of("terminated")) == 1


def test_ranks_that_have_not_come_end_with_their_launcher(play: Play) -> None:
    book = play(0, lingers=inf)
    for rank in range(2):
        book.know(rank, ready=False, announces=True)
    client = attached(book)
    assert states(client) == ["waiting", "waiting"]
    book.feed(inputs.JobEnded(1))
    book.pump()
    assert states(client) == ["exited", "exited"]
    assert client.of("exited") == [{"exitCode": 1}]
