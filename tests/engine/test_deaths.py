"""How ranks have ended, in `list` and in a line for the user; and those that are held before."""

from __future__ import annotations

import pytest

from dap_mux.engine import inputs
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, all_stopped, attached, introduce, told_by_us
from tests.support.playbook import Playbook
from tests.support.players import Client


def reason(client: Client, rank: int) -> str | None:
    text: str | None = client.ask("list").body["ranks"][rank]["reason"]
    return text


def ours(play: Play, count: int = 2) -> Playbook:
    """Ranks that the session has started."""
    book = play(owns_job=True)
    for number in range(count):
        book.know(number, watched=True)
    return book


def killed(book: Playbook, number: int, how: str, code: int = -9) -> None:
    book.absent.add(("job", number))
    with book.happens():
        book.rank(number).event("terminated")
    book.feed(inputs.RankExited(("job", number), code, how))
    book.pump()


def test_a_signal_and_where_it_was(play: Play) -> None:
    """`list` says which, and a line where the rank was seen last."""
    book = ours(play)
    client = attached(book)
    all_stopped(book)
    killed(book, 1, "SIGSEGV (11)", -11)
    book.wait(0.3)
    assert reason(client, 1) == "SIGSEGV (11)"
    assert told_by_us(client) == [
        "dap-mux: rank 1 died: SIGSEGV (11); last stopped at train.py:6 in train\n"
    ]


def test_equal_deaths_share_a_line(play: Play) -> None:
    """And it comes before the end of the session."""
    book = ours(play)
    client = attached(book)
    for number in range(2):
        killed(book, number, "SIGKILL (9), not sent by dap-mux")
    assert told_by_us(client) == ["dap-mux: ranks 0-1 died: SIGKILL (9), not sent by dap-mux\n"]
    assert len(client.of("terminated")) == 1


def test_an_exception_that_was_shown(play: Play) -> None:
    """The exception's own place, once the rank has ended of it."""
    book = ours(play)
    client = attached(book)
    with book.happens():
        book.rank(1).raises()
    book.wait(1)
    client.ask("continue", threadId=book.thread(1))
    with book.happens():
        book.rank(1).exits()
    book.exited(1, 1)
    book.wait(0.3)
    assert reason(client, 1) == "failed: ValueError at train.py:14, exit code 1"
    assert told_by_us(client) == [
        "dap-mux: rank 1 failed: ValueError at train.py:14, exit code 1\n"
    ]


def test_held_with_nobody_attached(play: Play) -> None:
    """It says what it failed of, and how long it is held still."""
    book = ours(play)
    client = book.client()
    introduce(client)
    client.ask("attach", role="observer")
    book.failed(1, "NotImplementedError at model.py:33", 300.0)
    assert reason(client, 1) == "failed: NotImplementedError at model.py:33, held, 300 s left"
    book.failed(1, "NotImplementedError at model.py:33", 240.2)
    assert reason(client, 1) == "failed: NotImplementedError at model.py:33, held, 240 s left"
    book.failed(1, "NotImplementedError at model.py:33", None)
    book.exited(1, 1)
    assert reason(client, 1) == "failed: NotImplementedError at model.py:33, exit code 1"


@pytest.mark.parametrize("code", [0, None])
def test_an_end_in_peace_is_no_death(play: Play, code: int | None) -> None:
    """Nobody is told; `list` has the code where it is known."""
    book = ours(play)
    client = attached(book)
    with book.happens():
        book.rank(1).exits()
    book.exited(1, code)
    book.wait(0.3)
    assert told_by_us(client) == []
    assert reason(client, 1) == ("the process ended" if code is None else "exit code 0")


def test_an_end_that_we_have_asked_for(play: Play) -> None:
    """Ctrl-C at the job's terminal, say."""
    book = ours(play)
    client = attached(book)
    all_stopped(book, LINE, 1)
    with book.happens():
        book.rank(1).event("terminated")
    book.feed(inputs.RankExited(("job", 1), -15, "SIGTERM (15)", wanted=True))
    book.wait(0.3)
    assert told_by_us(client) == []


def test_started_again(play: Play) -> None:
    """Nothing of the old process is said of the new one."""
    book = ours(play)
    client = attached(book)
    killed(book, 1, "SIGSEGV (11)", -11)
    book.absent.clear()
    book.know(1, pid=4711, watched=True)
    book.wait(1)
    assert reason(client, 1) is None
    with book.happens():
        book.rank(1).exits()
    book.exited(1, 0)
    book.wait(0.3)
    assert reason(client, 1) == "exit code 0"
    assert told_by_us(client) == ["dap-mux: rank 1 died: SIGSEGV (11)\n"]
