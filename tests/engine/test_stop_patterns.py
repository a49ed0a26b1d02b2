"""What the users of four kinds of editor see when ranks stop, step, run on, come and go.

Each is a line of the tables of event patterns; `client.shows` is the model editor's own view,
and no rank may run on without having been told to by the user.
"""

from __future__ import annotations

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import KINDS, LINE, SETTLED, editing, introduce, stopped_ranks
from tests.support.editors import VSCodeModel
from tests.support.fake_rank.rank import FakeRank
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import EditorClient

each_kind = pytest.mark.parametrize("kind", KINDS)


def stop(book: Playbook, *ranks: int, line: int = LINE) -> None:
    """These ranks stop at a line in the same moment, and everybody comes to rest."""
    with book.happens():
        for rank in ranks:
            book.rank(rank).hits(line)
    book.wait(0.6)


def three_of_four(book: Playbook, kind: str) -> EditorClient:
    """Ranks 1, 2 and 3 are stopped; 1 has the focus; 0 runs on."""
    client = editing(book, kind)
    with book.quietly("ranks 1-3 stop, rank 0 runs on"):
        stop(book, 1, 2, 3)
    assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 stopped"
    return client


def all_four(book: Playbook, kind: str) -> EditorClient:
    """All are stopped, 0 has the focus."""
    client = editing(book, kind)
    with book.quietly("ranks 0-3 stop"):
        stop(book, 0, 1, 2, 3)
    return client


@each_kind
def test_first_stop_some_running(play: Play, kind: str) -> None:
    """Ranks 1-3 stop, rank 0 runs on: one line highlighted, one row running."""
    book, client = play.scene(4, editing, kind)
    stop(book, 1, 2, 3)
    assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 stopped"
    assert stopped_ranks(book) == [1, 2, 3]


@each_kind
def test_first_stop_nobody_running(play: Play, kind: str) -> None:
    """All stop: announced at once, without waiting for others."""
    book, client = play.scene(4, editing, kind)
    book.hits(LINE)
    assert client.shows == "0 stopped <, 1 stopped, 2 stopped, 3 stopped"


@each_kind
def test_late_stopper(play: Play, kind: str) -> None:
    """A rank that stops later is marked; the focus, and the line shown, stay."""
    book, client = play.scene(4, editing, kind)
    with book.quietly("rank 1 stops"):
        stop(book, 1)
    assert client.shows == "0 running, 1 stopped <, 2 running, 3 running"
    stop(book, 3)
    assert client.shows == "0 running, 1 stopped <, 2 running, 3 stopped"
    assert stopped_ranks(book) == [1, 3]


@each_kind
def test_many_late_stoppers(play: Play, kind: str) -> None:
    """Ten at once are one announcement, where the editor can take them as one."""
    book, client = play.scene(12, editing, kind)
    with book.quietly("rank 1 stops"):
        stop(book, 1)
    stop(book, *range(2, 12))
    rest = ", ".join(f"{rank} stopped" for rank in range(2, 12))
    assert client.shows == f"0 running, 1 stopped <, {rest}"
    assert len(stopped_ranks(book)) == 11


@each_kind
def test_move_focus(play: Play, kind: str) -> None:
    """With rank 0 running and 1-3 stopped, moving the focus resumes nobody."""
    book, client = play.scene(4, three_of_four, kind)
    assert client.ask("focus", rank=3).body["threadId"] == book.thread(3)
    book.wait(0.6)
    assert client.shows == "0 running, 1 stopped, 2 stopped, 3 stopped <"
    assert stopped_ranks(book) == [1, 2, 3]


@each_kind
def test_step_of_a_class(play: Play, kind: str) -> None:
    """The class steps together and is back with the same focus; the runner stays running."""
    book, client = play.scene(4, three_of_four, kind)
    client.press(client.editor.press_f10())
    book.wait(0.5)
    assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 stopped"
    assert client.editor.arrow == (book.thread(1), LINE + 1)
    assert [book.rank(n).program.line for n in (1, 2, 3)] == [LINE + 1] * 3


@each_kind
def test_five_fast_steps(kind: str, rehearse: Play) -> None:
    """Five F10 without waiting: nobody is left behind, and the focus stays."""
    book, client = rehearse.scene(4, all_four, kind)
    for _ in range(5):
        client.press(client.editor.press_f10())
        book.pump()
    book.wait(1)
    assert client.shows == "0 stopped <, 1 stopped, 2 stopped, 3 stopped"
    assert len({rank.program.line for rank in book.ranks.values()}) == 1


@each_kind
def test_slow_step_others_arrive(play: Play, kind: str) -> None:
    """The focus is blocked in its step: after 600 ms it is shown running, its stop follows."""
    book, client = play.scene(4, three_of_four, kind)
    book.rank(1).slow = True
    client.press(client.editor.press_f10())
    book.wait(0.7)
    if kind != "dape":  # there, what marks a row selects it: it is told when the focus arrives
        assert client.shows == "0 running, 1 running, 2 stopped, 3 stopped"
    if isinstance(client.editor, VSCodeModel):
        client.press(client.editor.tick_800ms_after_step())
        book.pump()
    if kind != "dape":
        assert client.editor.arrow is None
    book.arrives(1)
    book.wait(0.6)
    assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 stopped"
    assert client.editor.arrow == (book.thread(1), LINE + 1)
    assert stopped_ranks(book) == [1, 2, 3]


@each_kind
def test_slow_step_focus_arrives_first(play: Play, kind: str) -> None:
    """Another member is blocked: the class is shown after 600 ms, and its stop follows."""
    book, client = play.scene(4, three_of_four, kind)
    book.rank(3).slow = True
    client.press(client.editor.press_f10())
    book.wait(0.7)
    assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 running"
    book.arrives(3)
    book.wait(0.6)
    assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 stopped"


@each_kind
def test_continue_all(play: Play, kind: str) -> None:
    """F5: everybody runs, and is seen to."""
    book, client = play.scene(4, three_of_four, kind)
    client.press(client.editor.press_f5())
    book.wait(1)
    assert client.shows == "0 running, 1 running, 2 running, 3 running"
    assert client.editor.arrow is None
    assert stopped_ranks(book) == []


@pytest.mark.parametrize("kind", ["vscode", "neovim"])
def test_continue_one_row(play: Play, kind: str) -> None:
    """A row's own button acts on that rank only, and the focus stays."""
    book, client = play.scene(4, three_of_four, kind)
    client.press(client.editor.press_row_button(book.thread(3), "continue"))
    book.wait(1)
    assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 running"
    assert stopped_ranks(book) == [1, 2]


@each_kind
def test_continue_focus_alone(play: Play, kind: str) -> None:
    """In scope `rank` F5 lets the focus run alone: another stopped rank is shown."""
    book, client = play.scene(4, three_of_four, kind)
    client.ask("scope", value="rank")
    client.press(client.editor.press_f5())
    book.wait(1)
    assert client.shows == "0 running, 1 running, 2 stopped <, 3 stopped"
    assert stopped_ranks(book) == [2, 3]


@each_kind
def test_leave_without_focus(play: Play, kind: str) -> None:
    """A rank ends that nobody looks at: its row goes."""
    book, client = play.scene(4, three_of_four, kind)
    book.exits(3)
    book.wait(1)
    assert client.shows == "0 running, 1 stopped <, 2 stopped"
    assert stopped_ranks(book) == [1, 2]


@each_kind
def test_leave_with_focus(play: Play, kind: str) -> None:
    """The focused rank ends: its class's lowest rank is shown, nobody is resumed."""
    book, client = play.scene(4, three_of_four, kind)
    book.exits(1)
    book.wait(1)
    assert client.shows == "0 running, 2 stopped <, 3 stopped"
    assert stopped_ranks(book) == [2, 3]


@each_kind
def test_join_while_stopped(play: Play, kind: str) -> None:
    """A rank joins a stopped session: a running row more, the line stays."""
    book, client = play.scene(3, editing, kind)
    with book.quietly("ranks 1 and 2 stop, rank 0 runs on"):
        stop(book, 1, 2)
    book.know(3)
    book.wait(1)
    if isinstance(client.editor, VSCodeModel):
        client.press(client.editor.tick_100ms_after_thread_started())
        book.pump()
    if kind != "neovim":  # it reads the rows again with its next stop
        assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 running"
    stop(book, 0)
    assert client.shows == "0 stopped, 1 stopped <, 2 stopped, 3 running"


@each_kind
def test_joiner(play: Play, kind: str) -> None:
    """An editor joins a stopped session and sees it as it is."""
    book = play(4)
    first = book.client("first")
    with book.quietly("first has attached, ranks 1-3 have stopped"):
        introduce(first)
        first.ask("attach", justMyCode=True)
        first.ask("configurationDone")
        stop(book, 1, 2, 3)
    client = editing(book, kind)
    book.wait(1)
    assert client.shows == "0 running, 1 stopped <, 2 stopped, 3 stopped"
    assert stopped_ranks(book) == [1, 2, 3]


@each_kind
def test_another_rank_stops_during_a_slow_step(play: Play, kind: str) -> None:
    """One rank steps slowly and another hits a breakpoint: the focus does not jump."""
    book, client = play.scene(4, editing, kind)
    with book.quietly("rank 1 stops"):
        stop(book, 1)
    book.rank(1).slow = True
    client.press(client.editor.press_f10())
    book.pump()
    stop(book, 3, line=8)
    book.wait(0.6)
    if isinstance(client.editor, VSCodeModel):
        client.press(client.editor.tick_800ms_after_step())
        book.pump()
    book.arrives(1)
    book.wait(0.6)
    assert client.shows == "0 running, 1 stopped <, 2 running, 3 stopped"
    assert stopped_ranks(book) == [1, 3]


@each_kind
def test_the_exception_is_shown_first(play: Play, kind: str) -> None:
    """Of ranks that stop together, the one that raised has the focus."""
    book, client = play.scene(4, editing, kind)
    with book.happens():
        book.rank(1).hits(LINE)
        book.rank(2).raises()
    book.wait(1)
    assert client.shows == "0 running, 1 stopped, 2 stopped <, 3 running"


@pytest.mark.parametrize("count", [4, 64])
def test_vscode_asks_five_things_however_many_ranks(count: int, rehearse: Play) -> None:
    """The cost of a stop does not grow with the ranks."""
    book, client = rehearse.scene(count, editing, "vscode")
    before = client.editor.requests_sent
    stop(book, *range(1, count))
    assert client.editor.requests_sent - before <= 5


@each_kind
def test_a_stop_while_another_rank_attaches(kind: str, rehearse: Play) -> None:
    """The other one stops in the next moment: that is one stop for every editor."""
    book, client = rehearse.scene(2, editing, kind)
    late = book.ranks["job", 2] = FakeRank(2)
    late.silent = {"evaluate"}
    book.know(2)
    book.hits(LINE, 0, 1)
    assert client.of("stopped") == []
    late.answers()
    late.hits(LINE)
    book.wait(0.6)
    assert [one["threadId"] for one in client.of("stopped")] == [book.thread(0)]
    assert client.shows == "0 stopped <, 1 stopped, 2 stopped"
    assert client.editor.arrow == (book.thread(0), LINE)


@each_kind
def test_a_stop_before_the_last_one_is_applied(kind: str, rehearse: Play) -> None:
    """It waits for the window: some editors lose the stack that they have just asked for."""
    book, client = rehearse.attached(2, kind=kind)
    book.hits(LINE, 1)
    book.wait(SETTLED)
    told = len(client.of("stopped"))
    book.hits(LINE, 0)
    assert len(client.of("stopped")) == told == 1
    book.wait(0.1)
    assert len(client.of("stopped")) > told
