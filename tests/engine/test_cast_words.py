"""Every word of pdb that `cast` knows, as ranks and clients see it."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, lines, stopped, stopped_ranks, values_are
from tests.engine.test_cast import cast, errors, values
from tests.support.scripted.playbook import PATH


class TestLooking:
    def test_where_up_down(self, play: Play) -> None:
        """Each rank has a frame of its own that `p` looks in; running on forgets it."""
        _, client = play.stopped(3, 0, 1)
        (stack,) = values(cast(client, "0-1", "w")).values()
        assert stack.splitlines() == ["  /job/train.py(12)<module>()", "> /job/train.py(6)train()"]
        up = cast(client, "1", "u")
        assert values(up)["1"].startswith("> /job/train.py(12)<module>()")
        assert errors(cast(client, "1-2", "up 3")) == {
            "1": "oldest frame",
            "2": "is running: 'u' needs a stopped rank",
        }
        cast(client, "all", "p loss")
        assert errors(cast(client, "0", "d")) == {"0": "newest frame"}
        cast(client, "1", "n")
        (stack,) = values(cast(client, "1", "where")).values()
        assert stack.splitlines()[-1] == "> /job/train.py(7)train()"

    def test_sources_and_values(self, play: Play) -> None:
        """`l`, `ll`, `a`, `pp`, `whatis` and `source` are evaluated in the selected frame."""
        book, client = play.stopped(2)
        values_are(book, "net", "Net()", "Net()")
        told = [
            *(values(cast(client, "all", word)) for word in ("l", "l 3", "l 2, 9", "l .", "ll")),
            *(values(cast(client, "all", word)) for word in ("a", "args", "pp net")),
            *(values(cast(client, "all", word)) for word in ("whatis net", "source net")),
        ]
        assert [list(one) for one in told] == [["0-1"]] * len(told)
        assert "NameError" in errors(cast(client, "all", "pp nothing"))["0-1"]

    def test_display(self, play: Play) -> None:
        """`display` shows after each step what has changed; `undisplay` ends that."""
        book, client = play.stopped(2)
        values_are(book, "loss", "1", "1")
        assert values(cast(client, "all", "display loss")) == {"0-1": "1"}
        book.rank(1).data.values["loss"] = "2"
        told = values(cast(client, "all", "n"))
        assert "display" not in told["0"]
        assert told["1"].endswith("display loss: 2  [old: 1]")
        assert values(cast(client, "1", "display")) == {"1": "display loss: 2"}
        assert errors(cast(client, "1", "undisplay step")) == {"1": "'step' is not displayed"}
        assert values(cast(client, "all", "undisplay")) == {"0-1": ""}

    def test_help(self, play: Play) -> None:
        """The words and their long names."""
        client = stopped(play(1))
        (text,) = values(cast(client, "0", "h")).values()
        assert "unt until" in text


class TestMoving:
    def test_a_step(self, play: Play) -> None:
        """Exactly the named ranks step, as one; the answer says where they stand now."""
        book, client = play.stopped(4)
        answer = cast(client, "ranks(0,2)", "n")
        assert values(answer) == {"0,2": "> /job/train.py(7)train()\n-> code: line 7"}
        assert lines(book) == [7, 6, 7, 6]
        book.wait(1)
        cast(client, "3", "r")
        cast(client, "3", "step")
        assert lines(book) == [7, 6, 7, 6]
        assert stopped_ranks(book) == [0, 1, 2, 3]

    def test_a_step_that_takes_long(self, play: Play) -> None:
        """Who has not arrived after a moment is told as running; its stop comes as an event."""
        book, client = play.stopped(3)
        book.rank(1).slow = True
        answer = cast(client, "all", "n")
        assert answer.response is None
        book.wait(0.7)
        there = "> /job/train.py(7)train()\n-> code: line 7"
        assert values(answer) == {"0,2": there, "1": "running"}
        book.rank(1).slow = False
        book.arrives(1)
        book.wait(0.2)
        assert client.of("stopped")
        assert lines(book) == [7, 7, 7]

    def test_the_late_one_follows(self, play: Play) -> None:
        """A rank still on its way takes the next step when it arrives, so that the set is one."""
        book, client = play.stopped(2)
        book.rank(1).slow = True
        cast(client, "all", "n")
        book.wait(0.7)
        cast(client, "all", "n")
        book.rank(1).slow = False
        book.arrives(1)
        book.wait(0.7)
        assert lines(book) == [8, 8]

    def test_a_rank_that_does_not_hear(self, play: Play) -> None:
        """A rank that does not even answer the step is missing; nobody waits longer than asked."""
        book, client = play.stopped(2)
        book.rank(1).silent.add("next")
        answer = cast(client, "all", "n", timeout=3)
        book.wait(3.1)
        assert list(values(answer)) == ["0"]
        assert answer.body["missing"] == "1"

    def test_a_step_to_the_end(self, play: Play) -> None:
        """A rank that ends while it steps is told as exited."""
        book, client = play.stopped(2)
        book.rank(1).slow = True
        answer = cast(client, "all", "n")
        book.exits(1)
        assert values(answer)["1"] == "exited"

    def test_running_ranks_cannot_step(self, play: Play) -> None:
        """A rank that was not named is not stopped; no `continue` reaches a running rank."""
        book, client = play.stopped(2, 0)
        assert errors(cast(client, "all", "s")) == {"1": "is running: 's' needs a stopped rank"}
        assert values(cast(client, "all", "c")) == {"0-1": "running"}
        assert not book.rank(1).dead

    def test_pause(self, play: Play) -> None:
        """Those of the named ranks that run are stopped; nobody else is, and no one is twice."""
        book, client = play.stopped(4, 0)
        book.rank(2).slow = True
        assert values(cast(client, "0-2", "pause")) == {"0": "stopped", "1-2": "pausing"}
        assert values(cast(client, "2", "pause")) == {"2": "pausing"}
        book.arrives(2)
        book.wait(0.2)
        assert stopped_ranks(book) == [0, 1, 2]
        book.exits(3)
        assert errors(cast(client, "3", "pause")) == {"3": "exited: the process ended"}

    def test_continue_keeps_who_would_die(self, play: Play) -> None:
        """In a set, a rank held at an uncaught exception stays; named alone, it runs on."""
        book, client = play.stopped(2, 0)
        book.raises(1)
        book.wait(0.2)
        answer = cast(client, "all", "cont")
        assert values(answer) == {"0": "running"}
        assert "uncaught exception" in errors(answer)["1"]
        assert stopped_ranks(book) == [1]
        cast(client, "1", "c")
        assert stopped_ranks(book) == []

    def test_until(self, play: Play) -> None:
        """`unt`: out of the function or further down in it, with breakpoints for one stop."""
        book, client = play.stopped(3)
        book.rank(0).slow = True
        answer = cast(client, "0-1", "unt")
        assert [wanted["line"] for wanted in book.rank(0).last_breakpoints] == [LINE, 7, 8]
        book.hits(7, 0)
        book.wait(0.2)
        assert values(answer)["0"].startswith("> /job/train.py(7)train()")
        assert values(answer)["1"].startswith("> /job/train.py(12)<module>()")
        for number in range(3):
            wanted = book.rank(number).last_breakpoints
            assert [one["line"] for one in wanted] == [LINE]
        assert not client.of("breakpoint")
        assert list(values(cast(client, "2", "unt 8"))) == ["2"]

    def test_until_a_line_of_a_file(self, play: Play) -> None:
        """`unt FILE:LINE`: from wherever a rank is; one without that file stays."""
        book, client = play.stopped(4)
        with book.quietly("rank 0 runs on, rank 3 turns out to have no such file"):
            cast(client, "0", "c")
            book.rank(3).missing.add("/job/lib.py")
        answer = cast(client, "0,2-3", "unt /job/lib.py:3")
        assert values(answer) == {"0,2": "running"}
        assert "has no code there, so it stays" in errors(answer)["3"]
        assert stopped_ranks(book) == [1, 3]
        assert [len(book.rank(number).last_breakpoints) for number in range(4)] == [1, 1, 1, 0]
        for number in (0, 2):
            book.hits(3, number)
            book.wait(0.2)
            assert book.rank(number).last_breakpoints == []
        assert not client.of("breakpoint")
        assert "the full path" in cast(client, "2", "unt lib.py:3").refusal
        assert "FILE:LINE" in cast(client, "2", "unt soon").refusal

    @pytest.mark.parametrize("how", ["arrives", "raises"])
    def test_until_a_line_of_a_file_and_it_stops_first(self, play: Play, how: str) -> None:
        """It ran, and stands before the others have their breakpoints: there it stays."""
        book, client = play.stopped(2, 0)
        book.rank(0).silent = {"setBreakpoints"}
        answer = cast(client, "all", f"unt {PATH}:8")
        with book.happens():
            book.rank(1).hits(8) if how == "arrives" else book.rank(1).raises()
        book.answers(0)
        assert values(answer) == {"0": "running", "1": "stopped"}
        assert stopped_ranks(book) == [1]

    def test_jump(self, play: Play) -> None:
        """`j`: the next line to run; a rank that cannot says why."""
        book, client = play.stopped(2)
        book.rank(1).refuses["goto"] = "line 99 comes after the current code block"
        answer = cast(client, "all", "j 7")
        assert list(values(answer)) == ["0"]
        assert "comes after" in errors(answer)["1"]

    def test_a_stop_whose_place_is_on_its_way(self, play: Play) -> None:
        """A word for stopped ranks waits the moment until a fresh stop's stack is known."""
        book, client = play.attached(1)
        with book.quietly("the rank stops, and keeps its stack for itself"):
            book.rank(0).silent.add("stackTrace")
            book.hits(LINE, 0)
        answer = cast(client, "0", "w")
        assert answer.response is None
        book.answers(0)
        assert "train()" in values(answer)["0"]


class TestBreakpoints:
    def test_break(self, play: Play) -> None:
        """`b` sets in the named ranks only, is told to its client, and lists."""
        book, client = play.stopped(3)
        other = attached(book, "other")
        answer = cast(client, "0-1", "b 8, loss > 3")
        (text,) = values(answer).values()
        assert text.startswith("breakpoint ")
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [2, 2, 1]
        assert book.rank(0).last_breakpoints[1]["condition"] == "loss > 3"
        (told,) = client.of("breakpoint")
        assert told["reason"] == "new"
        assert told["breakpoint"]["source"]["path"] == PATH
        assert "another client set" in other.of("output")[-1]["output"]
        assert not other.of("breakpoint")
        listed = values(cast(client, "all", "b"))
        assert "if loss > 3" in listed["0-1"]
        assert "another client's" in listed["2"]
        assert list(values(cast(client, "all", "b train"))) == ["0-2"]
        assert list(values(cast(client, "2", "b train.py:7"))) == ["2"]
        (moved,) = values(cast(client, "2", "b train.py:6000")).values()
        assert moved.endswith(f"{PATH}:14 (line 6000 has no code)")

    def test_where_it_cannot_be(self, play: Play) -> None:
        """A file that is missing, a line without a file in a running rank, a rank to come."""
        book = play(2)
        book.absent.add(("job", 2))
        book.know(2)
        client = stopped(book, 0)
        book.rank(1).missing.add("/job/other.py")
        answer = cast(client, "all", "b /job/other.py:3")
        assert list(values(answer)) == ["0", "2"]
        assert values(answer)["2"].endswith("(once it is attached)")
        assert "does not exist" in errors(answer)["1"]
        assert "needs a stopped rank" in errors(cast(client, "1", "b 7"))["1"]
        assert "full path" in errors(cast(client, "1", "b nowhere.py:3"))["1"]

    def test_temporary(self, play: Play) -> None:
        """`tbreak` is over in each rank with its first hit; with the last it is gone."""
        book, client = play.stopped(2)
        cast(client, "all", "tbreak 8")
        cast(client, "all", "c")
        book.hits(8, 0)
        book.wait(0.2)
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [1, 2]
        book.hits(8, 1)
        book.wait(0.2)
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [1, 1]
        assert [told["reason"] for told in client.of("breakpoint")][-1] == "removed"

    def test_clear(self, play: Play) -> None:
        """`cl` takes from the named ranks only; a breakpoint without ranks is gone."""
        book, client = play.stopped(2)
        (text,) = values(cast(client, "all", "b 8")).values()
        number = text.split()[1]
        assert list(values(cast(client, "0", f"cl {number}"))) == ["0"]
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [1, 2]
        answer = cast(client, "all", "clear train.py:8")
        assert list(values(answer)) == ["1"]
        assert errors(answer) == {"0": "no such breakpoint here; `b` lists them"}
        assert client.of("breakpoint")[-1]["reason"] == "removed"
        cast(client, "1", "cl")
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [1, 0]
        listing = [{"line": LINE}]
        client.ask("setBreakpoints", source={"path": PATH}, breakpoints=listing)
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [1, 0]

    def test_conditions_and_counts(self, play: Play) -> None:
        """`condition` and `ignore` for some of the ranks make two of one; not both at once."""
        book, client = play.stopped(2)
        (text,) = values(cast(client, "all", "b 8")).values()
        number = text.split()[1]
        (said,) = values(cast(client, "0", f"condition {number} loss > 1")).values()
        assert said.endswith(f"stops only if loss > 1 (split off {number}, which other ranks keep)")
        conditions = [rank.last_breakpoints[1].get("condition") for rank in book.ranks.values()]
        assert conditions == ["loss > 1", None]
        cast(client, "1", f"ignore {number} 3")
        assert book.rank(1).last_breakpoints[1]["hitCondition"] == "> 3"
        assert "not both" in cast(client, "1", f"condition {number} x").refusal
        (listed,) = values(cast(client, "0", "b")).values()
        part = listed.splitlines()[-1].split()[0]
        assert "not both" in cast(client, "0", f"ignore {part} 2").refusal
        cast(client, "0", f"condition {part}")
        assert "condition" not in book.rank(0).last_breakpoints[1]
        cast(client, "1", f"ignore {number} 0")
        assert "hitCondition" not in book.rank(1).last_breakpoints[1]

    def test_switched_off_and_on(self, play: Play) -> None:
        """`disable` and `enable` in the named ranks; the breakpoint and its number stay."""
        book, client = play.stopped(2)
        (text,) = values(cast(client, "all", "b 8")).values()
        number = text.split()[1]
        cast(client, "0", f"disable {number}")
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [1, 2]
        assert " no " in values(cast(client, "all", "b"))["0"]
        cast(client, "all", f"enable {number}")
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [2, 2]

    def test_of_another_client(self, play: Play) -> None:
        """What another client has set is its own to change; with it, its breakpoints go."""
        book, client = play.stopped(1)
        other = attached(book, "other")
        (text,) = values(cast(client, "0", "b 8")).values()
        number = text.split()[1]
        for word in ("cl", "disable", "condition", "ignore"):
            assert "another client's" in cast(other, "0", f"{word} {number}").refusal
        client.ask("disconnect")
        book.wait(0.1)
        assert [one["line"] for one in book.rank(0).last_breakpoints] == [LINE]

    def test_an_editor_takes_it_for_its_own(self, play: Play) -> None:
        """An editor that was told of it sends its line: that means this one, with its ranks."""
        book, client = play.stopped(2)
        cast(client, "0", "b 8, loss > 3")
        listing = [{"line": LINE}, {"line": 8}]
        client.ask("setBreakpoints", source={"path": PATH}, breakpoints=listing)
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [2, 1]
        assert book.rank(0).last_breakpoints[1]["condition"] == "loss > 3"
        client.ask("setBreakpoints", source={"path": PATH}, breakpoints=listing[:1])
        assert [len(rank.last_breakpoints) for rank in book.ranks.values()] == [1, 1]

    def test_a_rank_lost_on_its_way_until(self, play: Play) -> None:
        """Breakpoints for one stop do not come back with a rank that was lost before it."""
        book, client = play.stopped(2)
        book.rank(0).slow = True
        cast(client, "0", "unt")
        book.rank(0).slow = False
        book.lose(0)
        book.wait(1)
        assert [one["line"] for one in book.rank(0).last_breakpoints] == [LINE]
        assert client.ask("list").body["counts"]["running"] == 1
