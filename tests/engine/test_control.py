"""Running and stopping: what no client's wish may do to a rank, and how a class stays together."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, lines, states, stopped_ranks


class TestContinueToRanksThatRun:
    """`continue` goes only to a rank that is stopped: anything else loses it for good."""

    def test_while_nobody_is_stopped(self, play: Play) -> None:
        """Answered by us; no rank is told."""
        book, client = play.attached(2)
        assert client.ask("continue", threadId=book.thread(0)).body
        assert not any(rank.dead for rank in book.ranks.values())

    def test_while_a_pause_is_outstanding(self, play: Play) -> None:
        """The stop is awaited first, then the rank runs on; nobody is shown stopped for it."""
        book, client = play.attached(2)
        for rank in book.ranks.values():
            rank.slow = True
        client.ask("pause", threadId=book.thread(0))
        client.ask("continue", threadId=book.thread(0))
        book.arrives()
        book.wait(1)
        assert stopped_ranks(book) == []
        assert not any(rank.dead for rank in book.ranks.values())
        assert states(client) == ["running", "running"]

    def test_pause_after_that(self, play: Play) -> None:
        """A pause again takes the continue back."""
        book, client = play.attached(1)
        book.rank(0).slow = True
        client.ask("pause", threadId=book.thread(0))
        client.ask("continue", threadId=book.thread(0))
        client.ask("pause", threadId=book.thread(0))
        book.arrives(0)
        book.wait(1)
        assert stopped_ranks(book) == [0]

    def test_pause_between_the_stop_and_that(self, play: Play) -> None:
        """The rank has stopped, and is to run on once its place is known: now it stays."""
        book, client = play.attached(1)
        rank = book.rank(0)
        rank.slow, rank.silent = True, {"stackTrace"}
        client.ask("pause", threadId=book.thread(0))
        client.ask("continue", threadId=book.thread(0))
        with book.happens():
            rank.arrives()
        client.ask("pause", threadId=book.thread(0))
        with book.happens():
            rank.answers()
        assert stopped_ranks(book) == [0]
        assert states(client) == ["stopped"]
        assert len(client.of("stopped")) == 1
        assert client.of("stopped")

    def test_twice(self, play: Play) -> None:
        """Two clients press F5 at once: each rank is told once."""
        book = play(2)
        first, second = attached(book, "first"), attached(book, "second")
        with book.quietly("both ranks stop"):
            book.hits(LINE)
            book.wait(0.1)
        first.send("continue", threadId=book.thread(0))
        second.send("continue", threadId=book.thread(1))
        book.pump()
        assert not any(rank.dead for rank in book.ranks.values())

    def test_continue_during_a_step(self, play: Play) -> None:
        """F5 while a step is under way: the step's stop comes first, and it runs on from there."""
        book, client = play.stopped(2)
        book.rank(1).slow = True
        client.ask("next", threadId=book.thread(0))
        client.ask("continue", threadId=book.thread(0))
        book.arrives(1)
        book.wait(1)
        assert stopped_ranks(book) == []
        assert not book.rank(1).dead


class TestHeldAtAnException:
    def test_continue_all_leaves_it(self, play: Play) -> None:
        """It would end the job and take the evidence along: only as the focus does it run on."""
        book, client = play.attached(3)
        with book.quietly("ranks 0 and 1 stop at line 6, rank 2 at an uncaught exception"):
            book.rank(0).hits(LINE)
            book.rank(1).hits(LINE)
            book.rank(2).raises()
            book.wait(0.1)
            client.ask("focus", rank=0)
        body = client.ask("continue", threadId=book.thread(0)).body
        assert body == {"allThreadsContinued": False}
        assert stopped_ranks(book) == [2]
        client.ask("continue", threadId=book.thread(2))
        assert stopped_ranks(book) == []

    def test_also_while_nobody_knows_yet_that_it_is_uncaught(self, play: Play) -> None:
        """Rank 2 has just raised, and has not said more, as all the others are told to run on."""
        book, client = play.attached(3)
        with book.quietly("ranks 0 and 1 stop at line 6"):
            book.hits(LINE, 0, 1)
            book.wait(0.1)
        book.rank(2).silent = {"exceptionInfo"}
        book.raises(2)
        body = client.ask("continue", threadId=book.thread(0)).body
        assert body == {"allThreadsContinued": False}
        book.answers(2)
        book.wait(1)
        assert stopped_ranks(book) == [2]
        assert states(client) == ["running", "running", "stopped"]

    def test_a_caught_one_runs_on(self, play: Play) -> None:
        """As soon as it is known to be that."""
        book, client = play.attached(2)
        with book.quietly("rank 0 stops at line 6"):
            book.rank(0).hits(LINE)
            book.wait(0.1)
        book.rank(1).data.answers["exceptionInfo"] = lambda _: {
            "exceptionId": "ValueError",
            "breakMode": "always",
        }
        book.raises(1)
        assert client.ask("continue", threadId=book.thread(0)).body == {"allThreadsContinued": True}
        assert stopped_ranks(book) == []

    def test_release_frees_it(self, play: Play) -> None:
        """`release` is the other way."""
        book, client = play.attached(2)
        with book.quietly("rank 1 raises"):
            book.rank(1).raises()
            book.wait(0.1)
        client.ask("release", ranks="1")
        assert stopped_ranks(book) == []


class TestClassStep:
    def test_late_member_follows(self, play: Play) -> None:
        """Not there after 600 ms: the class is shown, steps on, and the late one keeps up."""
        book, client = play.stopped(3)
        book.rank(2).slow = True
        client.ask("next", threadId=book.thread(0))
        assert client.of("stopped")[-1]["reason"] == "breakpoint"
        book.wait(0.6)
        assert client.of("stopped")[-1]["reason"] == "step"
        assert states(client) == ["stopped", "stopped", "running"]
        client.ask("next", threadId=book.thread(0))
        book.wait(0.7)
        assert lines(book) == [LINE + 2, LINE + 2, LINE]
        book.rank(2).slow = False
        book.arrives(2)
        book.wait(1)
        assert lines(book) == [LINE + 2] * 3
        assert states(client) == ["stopped"] * 3

    def test_member_stops_elsewhere(self, play: Play) -> None:
        """A breakpoint on the way counts as arrived; the member is shown where it is."""
        book, client = play.stopped(3)
        book.rank(2).slow = True
        client.ask("next", threadId=book.thread(0))
        book.hits(8, 2)
        book.wait(0.1)
        assert states(client) == ["stopped"] * 3
        assert lines(book) == [7, 7, 8]
        client.ask("next", threadId=book.thread(0))
        book.wait(0.1)
        assert lines(book) == [8, 8, 8]

    def test_member_exits(self, play: Play) -> None:
        """Who exits is dropped, and not waited for."""
        book, client = play.stopped(3)
        book.rank(2).slow = True
        client.ask("next", threadId=book.thread(0))
        book.exits(2)
        book.wait(0.1)
        assert client.of("stopped")[-1]["reason"] == "step"
        assert states(client) == ["stopped", "stopped", "exited"]

    def test_member_is_lost(self, play: Play) -> None:
        """So is who loses its connection."""
        book, client = play.stopped(3)
        book.rank(2).slow = True
        client.ask("next", threadId=book.thread(0))
        book.lose(2)
        book.wait(0.1)
        assert client.of("stopped")[-1]["reason"] == "step"

    def test_other_places_stay(self, play: Play) -> None:
        """A rank in another function is of another class and does not move."""
        book, client = play.attached(3)
        with book.quietly("ranks 0 and 1 stop at line 6, rank 2 at line 12"):
            for rank in book.ranks.values():
                rank.hits(LINE if rank.number < 2 else 12)
            book.wait(0.1)
        client.ask("next", threadId=book.thread(0))
        book.wait(0.1)
        assert lines(book) == [7, 7, 12]

    def test_exactly_at_the_grace(self, play: Play) -> None:
        """599 ms are waited for, 600 are not."""
        book, client = play.stopped(2)
        book.rank(1).slow = True
        client.ask("next", threadId=book.thread(0))
        book.wait(0.599)
        assert len(client.of("stopped")) == 1
        book.wait(0.001)
        assert len(client.of("stopped")) == 2

    def test_collective(self, play: Play) -> None:
        """Twenty steps over a collective with a rank that is always late never split the class."""
        book, client = play.stopped(4)
        book.rank(3).slow = True
        with book.quietly("twenty steps, rank 3 late by up to 2 s each time"):
            for turn in range(20):
                client.ask("next", threadId=book.thread(0))
                book.wait(0.1 * turn)
                book.arrives(3)
                book.wait(0.7)
        assert len(set(lines(book))) == 1
        assert states(client) == ["stopped"] * 4


class TestRowBesideTheFocus:
    """What a request for a thread that is not the focus acts on, by the kind of client."""

    @pytest.mark.parametrize("kind", ["generic", "dape"])
    def test_continue_acts_on_the_scope(self, kind: str, rehearse: Play) -> None:
        """A client that always names thread 1 does not hang its job."""
        book, client = rehearse.stopped(3, kind=kind)
        client.ask("focus", rank=2)
        assert client.ask("continue", threadId=book.thread(0)).body == {"allThreadsContinued": True}
        assert stopped_ranks(book) == []
        client.ask("pause", threadId=book.thread(1))
        assert stopped_ranks(book) == [0, 1, 2]

    @pytest.mark.parametrize("kind", ["vscode", "neovim", "nvim-dap", "dap-mux console"])
    def test_continue_acts_on_the_row(self, kind: str, rehearse: Play) -> None:
        """There the thread id says which row the user chose."""
        book, client = rehearse.stopped(3, kind=kind)
        client.ask("focus", rank=2)
        body = client.ask("continue", threadId=book.thread(0)).body
        assert body == {"allThreadsContinued": False}
        assert stopped_ranks(book) == [1, 2]
        client.ask("continue", threadId=book.thread(2))
        client.ask("pause", threadId=book.thread(1))
        assert stopped_ranks(book) == [1]

    @pytest.mark.parametrize("kind", ["vscode", "neovim", "dape", "generic", "dap-mux console"])
    def test_single_thread_is_always_the_row(self, kind: str, rehearse: Play) -> None:
        """Also of the focus itself."""
        book, client = rehearse.stopped(3, kind=kind)
        client.ask("continue", threadId=book.thread(0), singleThread=True)
        client.ask("continue", threadId=book.thread(2), singleThread=True)
        assert stopped_ranks(book) == [1]
        client.ask("pause", threadId=book.thread(2), singleThread=True)
        assert stopped_ranks(book) == [1, 2]

    @pytest.mark.parametrize("kind", ["generic", "dape"])
    def test_a_step_moves_the_focus(self, kind: str, rehearse: Play) -> None:
        """Its class steps, and the next continue without a look elsewhere starts from there."""
        book, client = rehearse.attached(4, kind=kind)
        for rank in book.ranks.values():
            rank.hits(LINE if rank.number < 2 else 12)
        book.wait(0.6)
        client.ask("next", threadId=book.thread(2))
        book.wait(0.2)
        assert lines(book) == [LINE, LINE, 13, 13]
        assert client.of("stopped")[-1]["threadId"] == book.thread(2)
        client.ask("scope", value="class")
        client.ask("continue", threadId=book.thread(3))
        assert stopped_ranks(book) == [0, 1]

    def test_no_thread_means_the_focus(self, rehearse: Play) -> None:
        """As debugpy takes it."""
        book, client = rehearse.stopped(3, kind="vscode")
        client.ask("focus", rank=2)
        client.ask_wrongly("continue", {"singleThread": True})
        assert stopped_ranks(book) == [0, 1]
        assert client.ask_wrongly("continue", {}).body == {"allThreadsContinued": True}
        assert stopped_ranks(book) == []
        client.ask_wrongly("pause", {})
        assert stopped_ranks(book) == [0, 1, 2]

    def test_a_step_of_a_row_steps_it_alone(self, rehearse: Play) -> None:
        """As with the buttons of VS Code's rows."""
        book, client = rehearse.stopped(3, kind="vscode")
        client.ask("next", threadId=book.thread(2))
        book.wait(0.2)
        assert lines(book) == [LINE, LINE, LINE + 1]

    def test_a_rank_at_an_uncaught_exception_stays(self, rehearse: Play) -> None:
        """Naming its thread does not end the job while others are there to run on."""
        book, client = rehearse.attached(3)
        book.rank(0).raises()
        book.hits(LINE, 1, 2)
        book.wait(0.6)
        client.ask("focus", rank=2)
        client.ask("continue", threadId=book.thread(0))
        assert stopped_ranks(book) == [0]
        client.ask("continue", threadId=book.thread(0))
        assert stopped_ranks(book) == []


class TestScopeOfARankSet:
    """Continue, pause and steps act on exactly the ranks of the set."""

    def test_the_focus_is_in_it(self, play: Play) -> None:
        """Its ranks step, and the focus with them; the others stay where they are."""
        book, client = play.stopped(4, kind="vscode")
        client.ask("groups", define={"name": "slow", "ranks": "0,2"})
        assert client.ask("scope", value="@slow").body == {"value": "@slow"}
        client.ask("next", threadId=book.thread(0))
        book.wait(0.2)
        assert lines(book) == [LINE + 1, LINE, LINE + 1, LINE]
        body = client.ask("continue", threadId=book.thread(0)).body
        assert body == {"allThreadsContinued": False}
        assert stopped_ranks(book) == [1, 3]
        client.ask("pause", threadId=book.thread(1))  # to which the focus has moved
        assert stopped_ranks(book) == [0, 1, 2, 3]

    @pytest.mark.parametrize("command", ["next", "continue"])
    def test_the_focus_is_elsewhere(self, command: str, rehearse: Play) -> None:
        """It stays, and is told to have stopped: editors take it for running at once."""
        book, client = rehearse.stopped(3, kind="vscode")
        client.ask("scope", value="1-2")
        told = len(client.of("stopped"))
        assert client.ask(command, threadId=book.thread(0)).body is not None
        assert client.of("stopped")[told]["threadId"] == book.thread(0)
        book.wait(0.2)
        assert stopped_ranks(book) == ([0, 1, 2] if command == "next" else [0])
        assert lines(book) == [LINE, *([LINE + 1] * 2 if command == "next" else [LINE] * 2)]
        assert client.of("stopped")[-1]["threadId"] == book.thread(0)

    def test_a_held_key_with_the_focus_elsewhere(self, rehearse: Play) -> None:
        """A step that comes while one is under way is dropped, as with any scope."""
        book, client = rehearse.stopped(2, kind="vscode")
        client.ask("scope", value="1")
        book.rank(1).slow = True
        client.ask("next", threadId=book.thread(0))
        told = len(client.of("stopped"))
        assert client.ask("next", threadId=book.thread(0)).body == {}
        assert client.of("stopped")[told]["threadId"] == book.thread(0)
        book.arrives(1)
        book.wait(0.1)
        assert lines(book) == [LINE, LINE + 1]

    def test_none_of_it_is_attached(self, rehearse: Play) -> None:
        book, client = rehearse.stopped(2, kind="vscode")
        client.ask("scope", value="1")
        client.ask("drop", ranks="1")
        refusal = client.ask("next", threadId=book.thread(0)).refusal
        assert refusal == "the scope is 1, and none of these ranks is attached"
        client.ask("scope", value="auto")
        assert client.ask("next", threadId=book.thread(0)).body == {}

    @pytest.mark.parametrize("value", ["clas", "@nobody", "9"])
    def test_it_means_nothing(self, value: str, rehearse: Play) -> None:
        _, client = rehearse.stopped(2)
        refusal = client.ask("scope", value=value).refusal
        assert refusal.startswith("scope must be one of auto, rank, class, all, or a rank set: ")
        assert client.ask("scope").body == {"value": "auto"}


class TestSettling:
    def test_within_the_window(self, play: Play) -> None:
        """Stops 40 ms apart are one event, while another rank runs on."""
        book, client = play.attached(3)
        book.hits(LINE, 1)
        book.wait(0.04)
        book.hits(LINE, 0)
        book.wait(0.05)
        assert len(client.of("stopped")) == 1

    def test_stack_that_never_comes(self, play: Play) -> None:
        """A stop whose stack is not known after a second is told without."""
        book, client = play.attached(2)
        book.rank(0).silent = {"stackTrace"}
        book.hits(LINE, 0)
        book.wait(1.1)
        assert client.of("stopped")

    def test_runs_on_before_it_is_told(self, play: Play) -> None:
        """A rank that has run on again within the window was never shown stopped."""
        book, client = play.attached(2)
        rank = book.rank(0)
        with book.happens():
            rank.hits(LINE)
            rank.data.stopped = None
            rank.event("continued", threadId=1, allThreadsContinued=True)
        book.wait(1)
        assert states(client) == ["running", "running"]
        assert client.of("stopped") == []
