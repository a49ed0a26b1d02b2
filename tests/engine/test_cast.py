"""`cast` and `groups`: whom they reach, and how the answers come back."""

from __future__ import annotations

from typing import Any, Final

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, introduced, lines, stopped, values_are
from tests.support.scripted.playbook import PATH
from tests.support.scripted.scripted_clients import Answer, Client

Json = dict[str, Any]
REFUSALS: Final = (
    ("9", "n", "no rank 9"),
    ("ranks(", "n", "expected a rank number"),
    ("all", "  ", "needs a command"),
    ("all", "interact", "attach RANK"),
    ("all", "commands 1", "logpoint"),
    ("all", "q", "release"),
    ("all", "n 3", "p n 3"),
    ("all", "c + 1", "p c + 1"),
    ("all", "p", "needs an expression"),
    ("all", "u two", "number of frames"),
    ("all", "l 1, 2, 3", "FIRST, LAST"),
    ("all", "j up", "line number"),
    ("all", "unt now", "line number"),
    ("all", "b train.py:x", "not FILE:LINE"),
    ("all", "b 7, x ==", "not valid Python"),
    ("all", "cl 99", "no breakpoint 99"),
    ("all", "condition x", "number of a breakpoint"),
    ("all", "ignore 1 often", "a count"),
    ("all", "enable", "numbers of breakpoints"),
)
NOTHING: Final = {"outliers": "", "missing": "", "inMain": ""}
BAD_NAMES: Final[tuple[tuple[Json, str], ...]] = (
    ({"define": {"name": "no way", "ranks": "1"}}, "is not a valid name"),
    ({"define": {"name": "x", "ranks": "1-"}}, "1-"),
    ({"define": {"name": "x", "ranks": "@y"}}, "no set @y"),
    ({"define": {"name": "x", "ranks": "@x"}}, "no set @x"),
    ({"delete": "x"}, "no set @x"),
    ({"define": {"name": "x"}}, "ranks"),
)


def cast(client: Client, ranks: str, command: str, **more: object) -> Answer:
    return client.ask("cast", ranks=ranks, command=command, **more)


def values(answer: Answer) -> dict[str, str]:
    return {result["ranks"]: result["value"] for result in answer.body["results"]}


def errors(answer: Answer) -> dict[str, str]:
    return {error["ranks"]: error["message"] for error in answer.body["errors"]}


class TestAnswers:
    def test_equal_answers_fold(self, play: Play) -> None:
        """Most ranks first; who differs from most comes last and is named in `outliers`."""
        book, client = play.stopped(8)
        values_are(book, "loss", *["2.31"] * 4, "nan", *["2.31"] * 3)
        answer = cast(client, "all", "p loss")
        assert values(answer) == {"0-3,5-7": "2.31", "4": "nan"}
        assert answer.body["outliers"] == "4"
        assert answer.body["missing"] == ""
        assert answer.body["errors"] == []

    def test_no_outliers_without_a_majority(self, play: Play) -> None:
        """Each rank with a value of its own: sorted by rank, and nobody is the odd one."""
        _, client = play.stopped(3)
        answer = cast(client, "all", "p step")
        assert list(values(answer).items()) == [("0", "0"), ("1", "1"), ("2", "2")]
        assert answer.body["outliers"] == ""

    def test_running_ranks_answer_from_main(self, play: Play) -> None:
        """A running rank has no frame: the globals of `__main__` speak, and `inMain` says so."""
        book, client = play.stopped(4, 0, 1)
        values_are(book, "loss", *["7"] * 4)
        del book.rank(3).data.values["loss"]
        answer = cast(client, "all", "p loss")
        assert values(answer) == {"0-1": "7", "2": "7"}  # our double tells types of the latter only
        assert answer.body["inMain"] == "2"
        assert "__main__" in errors(answer)["3"]

    def test_running_ranks_answer_from_the_function_that_they_are_in(self, play: Play) -> None:
        """Where `__main__` lacks a name: a rank that is blocked in C has no frame to stop in."""
        book, client = play.attached(3)
        book.rank(0).data.values["shard"] = "5"
        book.rank(1).data.in_frames["shard"] = "41"
        answer = cast(client, "all", "p shard")
        assert values(answer) == {"0": "5", "1": "41"}
        assert answer.body["inMain"] == "0-1"
        assert "NameError: name 'shard' is not defined" in errors(answer)["2"]

    def test_statements_need_a_stopped_rank(self, play: Play) -> None:
        """`!loss = 5` and a plain assignment run in the frame of stopped ranks only."""
        book, client = play.stopped(2, 0)
        answer = cast(client, "all", "!loss = 5")
        assert values(answer) == {"0": ""}
        assert "is running" in errors(answer)["1"]
        cast(client, "0", "n = 3")
        assert book.rank(0).data.values["n"] == "3"
        assert book.rank(0).program.line == LINE

    def test_rank_is_replaced(self, play: Play) -> None:
        """`$rank` and its like are each rank's own, as in breakpoints."""
        _, client = play.stopped(2)
        assert values(cast(client, "all", "p $rank")) == {"0": "0", "1": "1"}

    def test_failures_fold_too(self, play: Play) -> None:
        """An error is one line, however long debugpy's traceback is; equal ones fold."""
        book, client = play.stopped(3)
        trace = 'Traceback (most recent call last):\n  File "<string>", line 1\nValueError: bad\n'
        book.rank(1).refuses["evaluate"] = book.rank(2).refuses["evaluate"] = trace
        answer = cast(client, "all", "p loss")
        assert errors(answer) == {"1-2": "ValueError: bad"}

    def test_a_silent_rank_is_missing(self, play: Play) -> None:
        """Nobody waits longer than asked for; what comes later is dropped."""
        book, client = play.stopped(3)
        book.rank(1).silent.add("evaluate")
        answer = cast(client, "all", "p 1", timeout=2)
        book.wait(1.9)
        assert answer.response is None
        book.wait(0.2)
        assert values(answer) == {"0,2": "1"}
        assert answer.body["missing"] == "1"
        book.answers(1)
        assert values(cast(client, "1", "p 2")) == {"1": "2"}

    def test_a_rank_is_lost_meanwhile(self, play: Play) -> None:
        """A link that ends is an error at once, and the others' answers come."""
        book, client = play.stopped(2)
        book.rank(1).silent.add("evaluate")
        answer = cast(client, "all", "p 1")
        book.lose(1)
        assert values(answer) == {"0": "1"}
        assert "reset" in errors(answer)["1"]

    def test_a_rank_that_is_not_there(self, play: Play) -> None:
        """A rank that does not listen yet has its state for an answer."""
        book = play(1)
        book.absent.add(("job", 1))
        book.know(1)
        client = stopped(book)
        answer = cast(client, "all", "p 1")
        assert values(answer) == {"0": "1"}
        assert "waiting" in errors(answer)["1"]

    def test_a_value_with_children(self, play: Play) -> None:
        """A value unfolds as its lowest rank's; it cannot once that rank has run on."""
        book, client = play.stopped(2)
        values_are(book, "model", *["{1: 2}"] * 2)
        (result,) = cast(client, "all", "model").body["results"]
        assert result["ranks"] == "0-1"
        reference = result["variablesReference"]
        assert client.ask("variables", variablesReference=reference).body["variables"]
        cast(client, "0", "c")
        assert "run on" in client.ask("variables", variablesReference=reference).refusal

    def test_no_rank_at_all(self, play: Play) -> None:
        """A set of nobody is answered with nothing."""
        _, client = play.attached(2)
        for word in ("p 1", "n", "c", "u", "b", "unt", "j 3", "cl", "display 1"):
            body = cast(client, "stopped", word).body
            assert body == {**NOTHING, "results": [], "errors": []}

    def test_who_asked_has_left(self, play: Play) -> None:
        """The answer to a client that is gone is nobody's, and harms nobody."""
        book, client = play.stopped(2)
        other = attached(book, "other")
        book.rank(1).silent.add("evaluate")
        client.send("cast", ranks="all", command="p 1")
        book.pump()
        client.vanish()
        book.wait(6)
        assert values(cast(other, "0", "p 1")) == {"0": "1"}

    def test_an_observer_may_cast(self, play: Play) -> None:
        """A one-shot looks, steps and continues; it sets no breakpoint that dies with it."""
        book = play(2)
        stopped(book)
        observer = introduced(book, "observer")
        observer.ask("attach", role="observer")
        assert values(cast(observer, "0", "p 1")) == {"0": "1"}
        cast(observer, "0", "n")
        assert lines(book) == [7, 6]
        assert "as long as the client" in cast(observer, "0", "b 8").refusal

    def test_refusals(self, play: Play) -> None:
        """What cannot be done says why, and what to do instead."""
        client = stopped(play(2))
        for ranks, command, why in REFUSALS:
            assert why in cast(client, ranks, command).refusal

    def test_bad_arguments(self, play: Play) -> None:
        """The arguments of the request itself."""
        client = stopped(play(1))
        assert "timeout" in cast(client, "all", "p 1", timeout=0).refusal
        assert "command" in client.ask("cast", ranks="all").refusal

    def test_two_groups(self, play: Play) -> None:
        """With a second job, each set says whose ranks it is of."""
        book = play(2)
        book.know(0, "eval", port=7000)
        client = attached(book)
        values_are(book, "loss", *["1"] * 3)
        assert list(values(cast(client, "all", "p loss"))) == ["job:0-1; eval:0"]
        assert list(values(cast(client, "eval:0", "p loss"))) == ["eval:0"]


class TestGroups:
    def test_names(self, play: Play) -> None:
        """A name is a rank set from then on; all names are told each time."""
        _, client = play.stopped(4)
        assert client.ask("groups").body == {"groups": []}
        one = {"name": "slow", "ranks": "1,3"}
        entry = {"name": "slow", "ranks": "1,3", "definition": "1,3"}
        assert client.ask("groups", define=one).body == {"groups": [entry]}
        assert list(values(cast(client, "@slow", "p 1"))) == ["1,3"]
        assert [e["rank"] for e in client.ask("list", ranks="all - @slow").body["ranks"]] == [0, 2]
        cast(client, "1", "c")
        client.ask("groups", define={"name": "@still", "ranks": "@slow & stopped"})
        (still,) = [e for e in client.ask("groups").body["groups"] if e["name"] == "still"]
        assert still == {"name": "still", "ranks": "3", "definition": "@slow & stopped"}
        client.ask("groups", delete="@slow")
        (left,) = client.ask("groups").body["groups"]
        assert left["ranks"] == ""

    def test_refusals_of_names(self, play: Play) -> None:
        """A name that means nothing is not kept."""
        client = attached(play(2))
        for arguments, why in BAD_NAMES:
            assert why in client.ask("groups", **arguments).refusal
        assert client.ask("groups").body == {"groups": []}

    def test_a_name_of_itself(self, play: Play) -> None:
        """A definition that leads to itself leaves the one before."""
        client = attached(play(2))
        before = client.ask("groups", define={"name": "x", "ranks": "1"}).body
        refusal = client.ask("groups", define={"name": "x", "ranks": "@x | 0"}).refusal
        assert "in terms of itself" in refusal
        assert client.ask("groups").body == before

    def test_a_name_in_a_breakpoint(self, play: Play) -> None:
        """`@slow:` picks the ranks of a breakpoint."""
        book, client = play.attached(3)
        client.ask("groups", define={"name": "slow", "ranks": "2"})
        bodies = [{"line": 7, "condition": "@slow: True"}]
        client.ask("setBreakpoints", source={"path": PATH}, breakpoints=bodies)
        assert [bool(rank.last_breakpoints) for rank in book.ranks.values()] == [False, False, True]
        client.ask("groups", define={"name": "slow", "ranks": "0-1"})
        assert [bool(rank.last_breakpoints) for rank in book.ranks.values()] == [True, True, False]
        client.ask("groups", delete="slow")
        assert not any(rank.last_breakpoints for rank in book.ranks.values())
