"""One transcript for each of our own requests."""

from __future__ import annotations

import pytest

from dap_mux.engine import inputs
from dap_mux.pure.rank_sets.rank_rows import KeptRows
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, all_stopped, attached, frame_of, introduced, lines


class TestOurOwn:
    def test_list(self, play: Play) -> None:
        """`list`: every key always there."""
        book, client = play.attached(3)
        with book.quietly("rank 1 stops"):
            book.rank(1).hits(LINE)
            book.wait(0.1)
        body = client.ask("list").body
        assert [entry["state"] for entry in body["ranks"]] == ["running", "stopped", "running"]
        assert client.ask("list", ranks="1", states=["stopped"]).body["ranks"][0]["line"] == LINE
        assert "expected a rank set" in client.ask("list", ranks=" ").refusal
        assert client.ask("list", ranks="ranks(").refusal
        assert "'asleep'" in client.ask("list", states=["asleep"]).refusal

    def test_session(self, play: Play) -> None:
        """`session`: where clients connect, which an editor that has started it cannot know."""
        book, client = play.attached(1)
        assert client.ask("session").body == {"address": None}
        book.feed(inputs.Listening("127.0.0.1:5677"))
        assert client.ask("session").body == {"address": "127.0.0.1:5677"}

    def test_comm(self, play: Play) -> None:
        """`comm`: modes are begun, and asked for; a rank that cannot says why."""
        book, client = play.attached(3)
        book.rank(2).data.fails.add("comm_switch")
        body = client.ask("comm", ranks="1-2", mode="hash").body
        assert body["modes"] == [{"ranks": "1", "mode": "hash"}]
        assert [one["ranks"] for one in body["errors"]] == ["2"]
        modes = client.ask("comm").body["modes"]
        assert sorted(one["mode"] for one in modes) == ["hash", "off"]
        assert "'loud'" in client.ask("comm", mode="loud").refusal

    def test_focus(self, play: Play) -> None:
        """`focus`: another stopped rank is shown; a running or unknown one is refused."""
        book, client = play.attached(3)
        with book.quietly("ranks 0 and 1 stop"):
            book.hits(LINE, 0, 1)
            book.wait(0.1)
        assert client.ask("focus", rank=1).body["threadId"] == book.thread(1)
        assert client.of("stopped")[-1]["threadId"] == book.thread(1)
        assert "is running" in client.ask("focus", rank=2).refusal
        assert "no rank 7" in client.ask("focus", rank=7).refusal
        assert book.rank(0).data.stopped

    def test_focus_is_held_until_the_client_arrives(self, play: Play) -> None:
        """A `scopes` that was on its way when the focus moved does not take it back."""
        book, client = play.stopped(3)
        old = frame_of(client, book.thread(0))
        client.ask("focus", rank=1)
        client.ask("scopes", frameId=old)
        client.ask("next", threadId=book.thread(1))
        assert lines(book) == [LINE + 1] * 3, "the class of the focus steps"

    def test_focus_goes_where_the_client_looks(self, play: Play) -> None:
        """Once the new stack is fetched a look at another rank is a wish to go there."""
        book, client = play.stopped(3, kind="neovim")
        old = frame_of(client, book.thread(0))
        client.ask("focus", rank=1)
        frame_of(client, book.thread(1))
        client.ask("scopes", frameId=old)
        client.ask("next", threadId=book.thread(1))
        assert lines(book) == [LINE, LINE + 1, LINE], "a row beside the focus steps alone"

    def test_focus_is_shown_to_everybody(self, play: Play) -> None:
        """A console's `focus` moves the editor beside it too."""
        book = play(2)
        editor = attached(book, "editor")
        console = attached(book, "console")
        all_stopped(book)
        console.ask("focus", rank=1)
        assert editor.of("stopped")[-1]["threadId"] == book.thread(1)
        assert all(rank.data.stopped for rank in book.ranks.values())

    def test_ranks_event(self, play: Play) -> None:
        """The event `ranks`: only for who asked, several changes in one."""
        book = play(3)
        curious = attached(book, "curious", events=["ranks"])
        plain = attached(book, "plain")
        book.wait(0.1)
        before = len(curious.of("ranks"))
        all_stopped(book, LINE, 0, 2)
        told = curious.of("ranks")[before:]
        assert [[entry["rank"] for entry in one["changed"]] for one in told] == [[[0, 2]]]
        assert told[0]["changed"][0]["line"] == LINE
        assert told[0]["counts"]["stopped"] == 2
        assert not plain.of("ranks")

    def test_ranks_event_has_what_changed(self, rehearse: Play) -> None:
        """Merged with what was listed, it is what would be listed now."""
        book, client = rehearse.attached(3, events=["ranks"])
        book.wait(0.1)
        kept = KeptRows()
        kept.replace(client.ask("list").body["ranks"])
        before = len(client.of("ranks"))
        all_stopped(book, LINE, 0, 2)
        (told,) = client.of("ranks")[before:]
        place = {"function", "module", "path", "line", "thread"}
        assert {*told["changed"][0]} == {"rank", "worker", "group", "state", "reason", *place}
        client.ask(
            "list"
        )  # a client that has this must be told of the line, though it is as before
        with book.happens():
            client.ask("next", threadId=book.thread(0))
        book.wait(0.7)
        client.ask("continue", threadId=book.thread(2))
        book.wait(0.1)
        for body in client.of("ranks")[before:]:
            kept.update(body["changed"])
        assert [*kept.all.values()] == client.ask("list").body["ranks"]

    def test_breakpoints(self, play: Play) -> None:
        """`breakpoints`: all clients', what is wrong with them, and what would help."""
        book = play(3)
        book.rank(2).missing.add("/here/train.py")
        book.rank(2).disk.loaded = {"/there/train.py": True}
        curious = introduced(book, "curious")
        curious.ask("attach", role="observer", events=["breakpoints"])
        assert curious.ask("breakpoints").body == {"breakpoints": []}
        client = attached(book)
        book.wait(0.1)
        before = len(curious.of("breakpoints"))
        wanted = [
            {"line": 3},
            {"line": 4, "condition": "ranks(9)("},
            {"line": 5, "condition": "ranks(ddp=1): x"},
        ]
        client.ask("setBreakpoints", source={"path": "/here/train.py"}, breakpoints=wanted)
        book.wait(0.5)
        assert len(curious.of("breakpoints")) in (before + 1, before + 2), "a moment's are one"
        found = {one["line"]: one for one in curious.ask("breakpoints").body["breakpoints"]}
        assert sorted(found) == [3, 4, 5, LINE]
        assert found[LINE]["message"] is None
        assert found[LINE]["mappings"] == []
        assert [found[line]["condition"] for line in (3, 5)] == [None, "ranks(ddp=1): x"]
        assert found[3]["verified"]
        assert found[3]["message"].startswith("file missing on rank 2: /here/train.py; add {")
        entry = {"localRoot": "/here", "remoteRoot": "/there", "ranks": "2"}
        assert found[3]["mappings"] == [{"entry": entry, "instead": False}]
        assert found[5]["message"].startswith("group job has no mesh dimensions")
        assert not found[5]["verified"]
        assert not client.of("breakpoints")

    def test_who_leaves_last(self, play: Play) -> None:
        """`disconnect` tells who hears of ranks whether that has released them."""
        book = play(2)
        first = attached(book, "first", events=["ranks"])
        plain = attached(book, "plain")
        last = attached(book, "last", events=["ranks"])
        assert first.ask("disconnect").body == {"released": False}
        assert plain.ask("disconnect").body == {}
        assert last.ask("disconnect").body == {"released": True}

    @pytest.mark.parametrize(
        ("scope", "step", "run"),
        [("rank", [7, 6, 6], 1), ("class", [7, 7, 6], 1), ("all", [7, 7, 7], 3)],
    )
    def test_scope(self, play: Play, scope: str, step: list[int], run: int) -> None:
        """`scope`: whom `next` and `continue` act on; rank 2 is in a function of its own."""
        book, client = play.attached(3)
        with book.quietly("ranks 0 and 1 stop at line 6, rank 2 at line 8"):
            for rank in book.ranks.values():
                rank.hits(LINE if rank.number < 2 else 8)
            book.wait(0.1)
        assert client.ask("scope", value=scope).body == {"value": scope}
        assert client.ask("scope").body == {"value": scope}
        client.ask("next", threadId=book.thread(0))
        book.wait(1)
        assert lines(book)[:2] == step[:2]
        assert (book.rank(2).program.line != 8) is (scope == "all")
        client.ask("continue", threadId=book.thread(0))
        running = [rank.number for rank in book.ranks.values() if not rank.data.stopped]
        assert running == {"rank": [0], "class": [0, 1], "all": [0, 1, 2]}[scope]
        assert "must be one of" in client.ask("scope", value="galaxy").refusal

    def test_view(self, play: Play) -> None:
        """`view`: one thread a class; the focused rank has a row of its own, and ids survive."""
        book, client = play.attached(4)
        with book.quietly("ranks 0-2 stop, rank 3 runs on"):
            for number in range(3):
                book.rank(number).hits(LINE)
            book.wait(0.1)
        assert len(client.ask("threads").body["threads"]) == 4
        client.ask("view", value="classes")
        names = [row["name"] for row in client.ask("threads").body["threads"]]
        assert names == ["rank 0 · train.py:6", "2 × train.py:6 · ranks 1-2", "rank 3 · running"]
        client.ask("view", value="ranks")
        assert len(client.ask("threads").body["threads"]) == 4
        assert "must be one of" in client.ask("view", value="tree").refusal

    def test_release(self, play: Play) -> None:
        """`release`: detached and running; the rest stay stopped."""
        book, client = play.stopped(3)
        assert client.ask("release", ranks="1-2").body == {}
        book.wait(1)
        assert [bool(rank.data.stopped) for rank in book.ranks.values()] == [True, False, False]
        assert client.ask("list").body["counts"]["stopped"] == 1
        assert "ranks" in client.ask("release").refusal

    def test_drop(self, play: Play) -> None:
        """`drop`: forgotten; the session ends without it."""
        book, client = play.stopped(3)
        client.ask("drop", ranks="2")
        book.wait(1)
        assert [entry["rank"] for entry in client.ask("list").body["ranks"]] == [0, 1]
