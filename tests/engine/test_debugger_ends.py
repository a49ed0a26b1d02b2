"""`terminated` from a rank's adapter whose program has not said that it is over."""

from __future__ import annotations

from typing import Any

from dap_mux.engine.ranks.patching import PROGRAM_OVER
from tests.engine.conftest import Play
from tests.engine.scenes import attached, reasons, states
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

ONE: Any = ("job", 1)


def debugger_ends(book: Playbook, number: int) -> None:
    """What the adapter says where pydevd has died; nothing listens there any more."""
    book.absent.add(("job", number))
    with book.happens():
        book.rank(number).event("terminated")


def test_its_process_runs_on(play: Play) -> None:
    """On this machine that is seen: the rank is lost for as long as its process runs."""
    book, client = play.attached(2)
    book.runs[ONE] = True
    debugger_ends(book, 1)
    assert states(client) == ["running", "lost"]
    book.wait_quietly(60, "a minute passes")
    assert states(client) == ["running", "lost"]
    book.process_ends(1)
    assert states(client) == ["running", "exited"]


def test_all_of_them(play: Play) -> None:
    """The session goes on while a process does."""
    book, client = play.attached(2)
    for number in range(2):
        book.runs["job", number] = True
        debugger_ends(book, number)
    assert reasons(client) == ["its debugger has ended, and its process runs on without one"] * 2
    book.wait_quietly(60, "a minute passes")
    assert client.of("terminated") == []
    for number in range(2):
        book.process_ends(number)
    assert len(client.of("terminated")) == 1


def test_its_process_has_ended_too(play: Play) -> None:
    """A kill, say: the process is over by the time it is looked for."""
    book, client = play.attached(2)
    book.runs[ONE] = False
    debugger_ends(book, 1)
    assert states(client) == ["running", "exited"]


def test_who_started_it_watches_it(play: Play) -> None:
    """Nobody else is asked, and its end is what that one says."""
    book = play(owns_job=True)
    for number in range(2):
        book.know(number, watched=True)
    client = attached(book)
    debugger_ends(book, 1)
    assert states(client) == ["running", "lost"]
    book.wait_quietly(60, "a minute passes")
    assert states(client) == ["running", "lost"]
    book.exited(1, -9)
    assert states(client) == ["running", "exited"]


def test_the_end_is_seen_first(play: Play) -> None:
    """The launcher was quicker than the adapter."""
    book = play(owns_job=True)
    for number in range(2):
        book.know(number, watched=True)
    client = attached(book)
    book.exited(1, None)
    debugger_ends(book, 1)
    assert states(client) == ["running", "exited"]


def test_nobody_sees_it(play: Play) -> None:
    """Elsewhere: lost, and taken to have ended where there is no way back for 15 s."""
    book, client = play.attached(2)
    debugger_ends(book, 1)
    assert states(client) == ["running", "lost"]
    book.wait_quietly(14, "14 seconds pass")
    assert states(client) == ["running", "lost"]
    book.wait_quietly(2, "2 seconds pass")
    assert states(client) == ["running", "exited"]


def test_a_way_back(play: Play) -> None:
    """Somebody listens there again: the rank is attached again."""
    book, client = play.attached(2)
    debugger_ends(book, 1)
    book.absent.clear()
    book.wait_quietly(60, "a minute passes")
    assert states(client) == ["running", "running"]


def test_the_tunnel_is_down(play: Play) -> None:
    """Meanwhile nobody can know."""
    book, client = play.attached(2)
    debugger_ends(book, 1)
    book.know(1, way_down="the tunnel is down")
    book.wait_quietly(60, "a minute passes")
    assert states(client) == ["running", "lost"]


def test_the_program_has_said_that_it_is_over(play: Play) -> None:
    """What a patched rank says: no threads are waited for."""
    book, client = play.attached(2)
    with book.happens():
        book.rank(1).event("output", category="telemetry", output=PROGRAM_OVER)
        book.rank(1).event("terminated")
    assert states(client) == ["running", "exited"]


def test_before_it_is_attached(play: Play) -> None:
    """pydevd may die of the first breakpoints."""
    book = play(2)
    book.rank(1).silent = {"attach"}
    book.runs[ONE] = True
    client = attached(book)
    debugger_ends(book, 1)
    assert states(client) == ["running", "lost"]


def alone(play: Play, host: str) -> tuple[Playbook, Client]:
    """Two ranks without adapters on a host; nothing listens at the second's port any more."""
    book = play()
    for number in range(2):
        book.know(number, host=host).alone = True
    client = attached(book)
    book.absent.add(ONE)
    book.lose(1)
    book.wait_quietly(1, "it is tried again")
    return book, client


def test_a_machine_refuses_for_its_rank_without_an_adapter(play: Play) -> None:
    """The port was the process's own: it has ended, unless it is back within 15 s."""
    book, client = alone(play, "10.0.0.5")
    assert reasons(client) == [
        None,
        "its debugger has ended; whether its process still runs cannot be seen from here",
    ]
    book.wait_quietly(16, "16 seconds pass")
    assert states(client) == ["running", "exited"]


def test_the_near_end_of_a_tunnel_refuses(play: Play) -> None:
    """That says nothing of the rank."""
    book, client = alone(play, "127.0.0.1")
    book.wait_quietly(60, "a minute passes")
    assert states(client) == ["running", "lost"]
