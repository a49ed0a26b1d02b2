"""How ranks have ended, in `list` and in a line for the user; and those that are held before."""

from __future__ import annotations

import pytest

from dap_mux.engine import inputs
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, introduced, reasons, stopped, told_by_us
from tests.support.scripted.playbook import PATH, Playbook


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
    client = stopped(book)
    killed(book, 1, "SIGSEGV (11)", -11)
    book.wait(0.3)
    assert reasons(client)[1] == "SIGSEGV (11)"
    assert told_by_us(client) == [
        "dap-mux: rank 1 died: SIGSEGV (11); last stopped at train.py:6 in train\n"
    ]


def test_equal_deaths_share_a_line(play: Play) -> None:
    """And it comes before the end of the session, which nothing follows, not even a notice."""
    book = ours(play)
    client = attached(book, events=["ranks"])
    for number in range(2):
        killed(book, number, "SIGKILL (9), not sent by dap-mux")
    book.feed(inputs.Notice("too late"))
    book.wait(1)
    assert told_by_us(client) == ["dap-mux: ranks 0-1 died: SIGKILL (9), not sent by dap-mux\n"]
    assert len(client.of("terminated")) == 1
    assert client.events[-1]["event"] == "terminated"


def test_an_exception_that_was_shown(play: Play) -> None:
    """The exception's own place, once the rank has ended of it."""
    book = ours(play)
    client = attached(book)
    book.raises(1)
    book.wait(1)
    client.ask("continue", threadId=book.thread(1))
    book.exits(1)
    book.exited(1, 1)
    book.wait(0.3)
    assert reasons(client)[1] == "failed: ValueError at train.py:14, exit code 1"
    assert told_by_us(client) == [
        "dap-mux: rank 1 failed: ValueError at train.py:14, exit code 1\n"
    ]


def test_held_with_nobody_attached(play: Play) -> None:
    """It says what it failed of, and how long it is held still."""
    book = ours(play)
    client = introduced(book)
    client.ask("attach", role="observer")
    book.failed(1, "NotImplementedError at model.py:33", 300.0)
    assert reasons(client)[1] == "failed: NotImplementedError at model.py:33, held, 300 s left"
    book.failed(1, "NotImplementedError at model.py:33", 240.2)
    assert reasons(client)[1] == "failed: NotImplementedError at model.py:33, held, 240 s left"
    book.failed(1, "NotImplementedError at model.py:33", None)
    book.exited(1, 1)
    assert reasons(client)[1] == "failed: NotImplementedError at model.py:33, exit code 1"


@pytest.mark.parametrize("code", [0, None])
def test_an_end_in_peace_is_no_death(play: Play, code: int | None) -> None:
    """Nobody is told; `list` has the code where it is known."""
    book = ours(play)
    client = attached(book)
    book.exits(1)
    book.exited(1, code)
    book.wait(0.3)
    assert told_by_us(client) == []
    assert reasons(client)[1] == ("the process ended" if code is None else "exit code 0")


def test_an_end_that_we_have_asked_for(play: Play) -> None:
    """Ctrl-C at the job's terminal, say."""
    book = ours(play)
    client = stopped(book, 1)
    with book.happens():
        book.rank(1).event("terminated")
    book.feed(inputs.RankExited(("job", 1), -15, "SIGTERM (15)", wanted=True))
    book.wait(0.3)
    assert told_by_us(client) == []


def test_ranks_that_vanish_as_their_job_ends_well(play: Play) -> None:
    """As workers do whose driver has ended; where it has failed they are told of."""
    for code in (0, 1):
        book = play(1, owns_job=True, lingers=1000.0)
        client = attached(book)
        book.absent.add(("job", 0))
        book.lose(0)
        with book.happens():
            book.feed(inputs.JobEnded(code))
        book.pump()
        book.wait(0.5)
        assert bool(told_by_us(client)) is bool(code)


def test_started_again(play: Play) -> None:
    """Nothing of the old process is said of the new one."""
    book = ours(play)
    client = attached(book)
    killed(book, 1, "SIGSEGV (11)", -11)
    book.absent.clear()
    book.know(1, pid=4711, watched=True)
    book.wait(1)
    assert reasons(client)[1] is None
    book.exits(1)
    book.exited(1, 0)
    book.wait(0.3)
    assert reasons(client)[1] == "exit code 0"
    assert told_by_us(client) == ["dap-mux: rank 1 died: SIGSEGV (11)\n"]


def deep_in_a_library(book: Playbook, number: int) -> None:
    """An exception that a library has raised: debugpy marks that frame as subtle."""
    rank = book.rank(number)
    library = {"id": 900, "name": "linear", "line": 5, "source": {"path": "/lib/functional.py"}}
    own = {"id": 901, "name": "forward", "line": 33, "source": {"path": "/job/model.py"}}
    frames = [{**library, "column": 1, "presentationHint": "subtle"}, {**own, "column": 1}]
    rank.data.stopped = {"reason": "exception", "threadId": 1, "text": "RuntimeError"}
    rank.data.stopped["description"] = "shapes do not match"
    with book.happens():
        rank.event("stopped", **rank.data.stopped, stackFrames=frames)
    book.wait(1)


def test_the_users_own_frame(play: Play) -> None:
    """`list`, `w` and the line of its death name it."""
    book = ours(play)
    client = attached(book)
    deep_in_a_library(book, 1)
    entry = client.ask("list").body["ranks"][1]
    assert (entry["path"], entry["line"]) == ("/job/model.py", 33)
    (told,) = client.ask("cast", ranks="1", command="w").body["results"]
    assert told["value"].splitlines() == [
        "> /job/model.py(33)forward()",
        "  /lib/functional.py(5)linear()",
    ]
    killed(book, 1, "exit code 1", 1)
    book.wait(0.3)
    assert told_by_us(client) == [
        "dap-mux: rank 1 failed: RuntimeError at model.py:33, exit code 1\n"
    ]


def test_a_breakpoint_before_any_rank_is_up(play: Play) -> None:
    """It says so, also where the ranks are known."""
    book = play(2)
    book.absent |= {("job", 0), ("job", 1)}
    client = attached(book)
    told = client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": LINE}])
    (one,) = told.body["breakpoints"]
    assert (one["verified"], one["message"]) == (
        False,
        "no rank is up yet; it is set once one starts",
    )
