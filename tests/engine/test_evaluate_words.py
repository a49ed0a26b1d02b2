"""Words of ours in `evaluate`, values of several ranks as trees, and completions."""

from __future__ import annotations

from typing import Any

import pytest

from dap_mux.pure.rank_sets import Mesh
from tests.engine.conftest import Play
from tests.engine.scenes import frame_of, stopped, values_are
from tests.support.scripted.scripted_clients import Client


def say(client: Client, text: str) -> str:
    """Type a line in the debug console."""
    result: str = client.ask("evaluate", expression=text, context="repl").body["result"]
    return result


def refused(client: Client, text: str) -> str:
    """Type a line that is refused; return why."""
    return client.ask("evaluate", expression=text, context="repl").refusal


def unfold(client: Client, reference: int) -> dict[str, str]:
    """What is below a value."""
    below = client.ask("variables", variablesReference=reference).body["variables"]
    return {one["name"]: one["value"] for one in below}


class TestValues:
    def test_numbers_in_a_watch(self, play: Play) -> None:
        """A watch on several ranks: a child for each value, outliers first, then statistics."""
        book, client = play.stopped(4)
        values_are(book, "loss", "2.5", "2.5", "nan", "3.5000001")
        value = client.ask("evaluate", expression="ranks(0:4) loss", context="watch").body
        assert value["result"] == "⚠ {2}: nan | {0-1}: 2.5 | {3}: 3.50000…"
        assert list(unfold(client, value["variablesReference"]).items()) == [
            ("⚠ {2}", "nan"),
            ("{0-1}", "2.5"),
            ("{3}", "3.5000001"),
            ("min", "2.5"),
            ("max", "3.5"),
            ("mean", "2.83333"),
            ("std", "0.471405"),
        ]

    def test_a_histogram_is_for_eight_numbers(self, play: Play) -> None:
        """Fewer are read faster one by one."""
        for count, bars in ((7, None), (8, "█        ▂")):
            book, client = play.stopped(count)
            values_are(book, "loss", *["2.5"] * (count - 1), "3.5")
            value = client.ask("evaluate", expression="all loss", context="watch").body
            below = unfold(client, value["variablesReference"])
            assert below.get("histogram") == bars

    def test_a_tree(self, play: Play) -> None:
        """Below a child are the variables of a rank that said so; all of it dies with the stop."""
        book, client = play.stopped(3)
        values_are(book, "config", "{'a': 1}", "{'a': 1}", "{'a': 2}")
        value = client.ask("evaluate", expression="all config", context="repl").body
        top = value["variablesReference"]
        below = client.ask("variables", variablesReference=top).body["variables"]
        inner = below[1]["variablesReference"]
        assert [one["name"] for one in below] == ["⚠ {2}", "{0-1}"]
        assert unfold(client, inner) == {"of": "config"}
        with book.quietly("rank 2 runs on"):
            client.ask("continue", threadId=book.thread(2), singleThread=True)
        assert "rank 2 has run on" in client.ask("variables", variablesReference=top).refusal
        assert unfold(client, inner) == {"of": "config"}

    def test_a_tree_cannot_be_set(self, play: Play) -> None:
        """`setVariable` in a value of several ranks says what to do instead."""
        book, client = play.stopped(2)
        values_are(book, "loss", "1", "2")
        top = client.ask("evaluate", expression="all loss").body["variablesReference"]
        arguments: dict[str, Any] = {"variablesReference": top, "name": "0", "value": "3"}
        assert "several ranks" in client.ask("setVariable", **arguments).refusal

    def test_one_rank(self, play: Play) -> None:
        """One rank's value is just that."""
        book, client = play.stopped(3)
        values_are(book, "config", "1", "{'a': 1}", "3")
        value = client.ask("evaluate", expression="ranks(1) config", context="hover").body
        assert value["result"] == "{'a': 1}"
        assert unfold(client, value["variablesReference"]) == {"of": "config"}

    def test_errors_and_silence(self, play: Play) -> None:
        """Who fails and who is silent is in the value, and holds up nobody for ever."""
        book, client = play.stopped(3)
        del book.rank(0).data.values["loss"]
        book.rank(2).silent = {"evaluate"}
        answer = client.ask("evaluate", expression="@everybody loss", context="watch")
        assert "no set @everybody" in answer.refusal
        answer = client.ask("evaluate", expression="ranks(0:3): loss", context="watch")
        book.wait(5)
        text = answer.body["result"]
        assert text == "{1}: 10 | {0}: NameError: name 'loss' is not defined | no answer: 2"

    def test_the_frame_that_the_user_looks_at(self, play: Play) -> None:
        """A watch in a caller's frame is evaluated in the callers' frames of all.

        Once its rank has run on, that frame stands for the innermost one: an editor whose F10 is
        held shows no error.
        """
        book, client = play.stopped(2)
        frames = client.ask("stackTrace", threadId=book.thread(1)).body["stackFrames"]
        watch = {"expression": "all loss", "context": "watch"}
        for frame in frames:
            assert client.ask("evaluate", frameId=frame["id"], **watch).body["result"]
        with book.quietly("rank 1 runs on"):
            client.ask("continue", threadId=book.thread(1), singleThread=True)
        answer = client.ask("evaluate", frameId=frames[1]["id"], **watch)
        book.wait(5)
        assert "{0}: 0" in answer.body["result"]
        typed = client.ask(
            "evaluate", frameId=frames[1]["id"], expression="all loss", context="repl"
        )
        assert "rank 1 has run on" in typed.refusal

    def test_a_dimension_that_the_ranks_know(self, play: Play) -> None:
        """A rank set in a watch may name what only the ranks know."""
        book, client = play.stopped(4)
        mesh = Mesh.parse("dp=2,tp=2")
        for rank in book.ranks.values():
            rank.data.meshes = [[["dp", "tp"], [2, 2], list(mesh.coords(rank.number).values())]]
        values_are(book, "loss", "1", "2", "1", "2")
        value = client.ask("evaluate", expression="ranks(tp=1) loss", context="watch").body
        assert value["result"] == "{1,3}: 2"


class TestPython:
    @pytest.mark.parametrize("text", ["list", "ranks(0)", "cast(loss)", "attach", "all (loss)"])
    def test_what_python_can_read_is_pythons(self, play: Play, text: str) -> None:
        """It goes to the focused rank as it is."""
        book, client = play.stopped(2)
        book.rank(0).data.values[text] = "'python'"
        frame = frame_of(client, book.thread(0))
        value = client.ask("evaluate", expression=text, context="repl", frameId=frame).body
        assert value["result"] == "'python'"
        assert book.rank(0).data.evaluated[-1] == text

    def test_a_percent_sign_in_a_watch_is_pythons(self, play: Play) -> None:
        """Commands are for the console."""
        _, client = play.stopped(1)
        assert "NameError" in client.ask("evaluate", expression="%list", context="watch").refusal


class TestWords:
    def test_list(self, play: Play) -> None:
        """`%list`: the stopped ones; `%list all`, and by class."""
        book = play(4, meshes={"job": Mesh.parse("dp=2,tp=2")})
        client = stopped(book, 0, 1, 3)
        stopped_ones = say(client, "%list").splitlines()
        assert stopped_ones[0].split()[:3] == ["Actor", "Name", "Rank"]
        assert [line.split()[1] for line in stopped_ones[1:-1]] == ["0", "1", "3"]
        assert "{'dp': 1, 'tp': 1}" in stopped_ones[3]
        assert "train.train" in stopped_ones[3]
        assert stopped_ones[-1] == "1 running, 3 stopped"
        assert len(say(client, "%list all").splitlines()) == 6
        assert "0-1,3" in say(client, "%list classes")
        assert "no dimension" in refused(client, "%list ranks(xp=0)")

    def test_attach_moves_the_focus(self, play: Play) -> None:
        """`attach 3` in a debug console; what follows is Python of that rank."""
        book, client = play.stopped(4)
        assert say(client, "attach 3") == "rank 3 · train.py:6 in train"
        assert client.of("stopped")[-1]["threadId"] == book.thread(3)
        assert say(client, "loss") == "30"
        assert say(client, "%focus") == "rank 3"
        assert say(client, "attach job 2") == "rank 2 · train.py:6 in train"
        assert "one rank, not 2" in refused(client, "attach 0-1")
        assert "no rank 9" in refused(client, "attach 9")

    def test_scope_and_view(self, play: Play) -> None:
        """`%scope` and `%view` tell and set what is in force."""
        _, client = play.stopped(2)
        assert say(client, "%scope") == "scope: auto"
        assert say(client, "%scope rank") == "scope: rank"
        assert client.ask("scope").body == {"value": "rank"}
        assert say(client, "%view classes") == "view: classes"
        assert "must be one of" in refused(client, "%view tree")

    def test_compare(self, play: Play) -> None:
        """`%compare`, with a tolerance in words."""
        book, client = play.stopped(3)
        values_are(book, "loss", "100", "100", "101")
        assert say(client, "%compare loss") == "⚠ {2}: 101 | {0-1}: 100"
        assert say(client, "%compare ranks(1:3) loss within 2%") == "{1-2}: 100"
        assert "compare what" in refused(client, "%compare")

    def test_cast(self, play: Play) -> None:
        """`cast ranks(0:4) p loss`, Monarch's order too: values unfold, steps tell the places."""
        book, client = play.stopped(4)
        values_are(book, "config", "{'a': 1}", "{'a': 1}", "{'a': 1}", "{'a': 2}")
        value = client.ask("evaluate", expression="cast ranks(0:4) p config", context="repl").body
        assert value["result"] == "⚠ {3}: {'a': 2} | {0-2}: {'a': 1}"
        arguments = {"variablesReference": value["variablesReference"]}
        below = client.ask("variables", **arguments).body["variables"]
        assert [one["name"] for one in below] == ["⚠ {3}", "{0-2}"]
        assert unfold(client, below[1]["variablesReference"]) == {"of": "config"}
        values_are(book, "loss", "1", "2", "3", "4")
        value = client.ask("evaluate", expression="cast all p loss", context="repl").body
        assert unfold(client, value["variablesReference"])["mean"] == "2.5"
        assert say(client, "cast job ranks(2) loss") == "3"
        answer = client.ask("evaluate", expression="cast job ranks(0,1) n", context="repl")
        book.wait(1)
        assert "train.py" in answer.body["result"]
        assert [rank.program.line for rank in book.ranks.values()] == [7, 7, 6, 6]
        assert "rank 0 has run on" in client.ask("variables", **arguments).refusal
        assert "a command must follow" in refused(client, "cast all")
        assert "a rank set" in refused(client, "%cast")

    def test_groups(self, play: Play) -> None:
        """`%groups` names sets; `@name` works at once."""
        _, client = play.stopped(4)
        assert say(client, "%groups") == "no names yet"
        assert say(client, "%groups slow 1,3") == "@slow: 1,3"
        assert say(client, "%groups odd ~@slow & 0-2") == "@odd: 0,2 (~@slow & 0-2)\n@slow: 1,3"
        assert say(client, "@slow loss") == "{1}: 10 | {3}: 30"
        assert "@slow" in TestCompletions().labels(client, "@sl")
        assert say(client, "%groups delete odd") == "@slow: 1,3"

    def test_mesh_release_and_drop(self, play: Play) -> None:
        """`%mesh` reads anew; `%release` and `%drop` say whom."""
        book, client = play.stopped(3)
        assert say(client, "%mesh") == "job: no mesh is known"
        for rank in book.ranks.values():
            rank.data.meshes = [[["tp"], [3], [rank.number]]]
        assert say(client, "%mesh") == "job: tp=3"
        assert say(client, "%release ranks(tp=1)") == "release: ranks(tp=1)"
        assert say(client, "%drop 2") == "drop: 2"
        book.wait(1)
        assert [one["state"] for one in client.ask("list").body["ranks"]] == ["stopped", "running"]

    def test_help(self, play: Play) -> None:
        """`%help`, and what is no command."""
        _, client = play.stopped(1)
        assert "%compare [RANKS] EXPRESSION" in say(client, "%help")
        assert say(client, "%help view").startswith("%view [auto|ranks|classes]")
        assert "did you mean %list?" in refused(client, "%lst")
        assert "see %help" in refused(client, "%")
        assert "no command %me" in refused(client, "%help me")
        assert "which ranks?" in refused(client, "%release")

    def test_what_an_observer_may_not_do(self, play: Play) -> None:
        """A word can do no more than the request that it stands for."""
        book = play(2)
        stopped(book)
        observer = book.client("observer")
        observer.ask("initialize", clientID="x", adapterID="debugpy")
        observer.ask("attach", role="observer")
        assert "2 stopped" in say(observer, "%list")
        assert "for controllers" in refused(observer, "%drop 1")


class TestCompletions:
    def labels(self, client: Client, text: str, **more: object) -> list[str]:
        body = client.ask("completions", text=text, column=len(text) + 1, **more).body
        assert all(
            text[one["start"] :].startswith(one["label"][:1]) or len(text) == one["start"]
            for one in body["targets"]
        )
        return [one["label"] for one in body["targets"]]

    def test_in_a_debug_console(self, play: Play) -> None:
        """Words, rank sets, dimensions, and the names of a rank in the set."""
        book, client = play.stopped(4, settings={"meshes": {"job": Mesh.parse("dp=2,tp=2")}})
        frame = frame_of(client, book.thread(0))
        for text, offered in [
            ("%s", ["%scope"]),
            ("%list c", ["classes", "connecting"]),
            ("%scope ", ["auto", "rank", "class", "all"]),
            ("ca", ["cast "]),
            ("attach ru", ["running"]),
            ("cast ranks(d", ["dp="]),
            ("cast ranks(dp=", ["0", "1"]),
            ("cast ranks(dp=1) lo", ["loss"]),
            ("%compare ranks(0:2) ", ["step", "loss"]),
            ("ranks(tp=0) st", ["step"]),
            ("st", ["step"]),
            ("%help ", []),
            ("%nothing l", []),
        ]:
            assert self.labels(client, text, frameId=frame) == offered, text
