"""One transcript for each event of a rank, with one rank in the session and with several."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attach, frame_of, introduce, introduced
from tests.engine.test_breakpoints import set_one
from tests.support.scripted.playbook import PATH, Playbook

ONE_OR_MORE = pytest.mark.parametrize("count", [1, 3], ids=["one", "several"])
PROGRESS: Final[dict[str, dict[str, Any]]] = {
    "progressStart": {"title": "loading"},
    "progressUpdate": {"message": "half"},
    "progressEnd": {},
}


def everybody_says(book: Playbook, event: str, **body: Any) -> None:
    """All ranks send the same event in the same moment."""
    with book.happens():
        for rank in book.ranks.values():
            rank.event(event, **body)
    book.wait(0.2)


@ONE_OR_MORE
class TestNeverAsItIs:
    """Events that feed the session's state, from which our own events are made."""

    def test_stopped(self, play: Play, count: int) -> None:
        """Several stops in the window are one event."""
        book, client = play.attached(count)
        book.hits(LINE)
        (stop,) = client.of("stopped")
        assert stop["hitBreakpointIds"] == [1]
        assert stop["allThreadsStopped"] is True

    def test_continued(self, play: Play, count: int) -> None:
        """A rank that runs on by itself (its debug console may do that) is shown running."""
        book, client = play.stopped(count)
        rank = book.rank(0)
        with book.happens():
            rank.data.stopped = None
            rank.event("continued", threadId=1, allThreadsContinued=True)
        last = client.of("continued")[-1]
        assert last == {"threadId": book.thread(0), "allThreadsContinued": count == 1}

    def test_thread(self, play: Play, count: int) -> None:
        """Further Python threads have rows of their own only with one rank."""
        book, client = play.attached(count)
        rank = book.rank(0)
        with book.happens():
            rank.data.threads[2] = "Thread-2"
            rank.event("thread", reason="started", threadId=2)
        assert len(client.ask("threads").body["threads"]) == (2 if count == 1 else 3)
        with book.happens():
            del rank.data.threads[2]
            rank.event("thread", reason="exited", threadId=2)
        reasons = [body["reason"] for body in client.of("thread")]
        assert reasons.count("exited") == (count == 1)

    def test_thread_of_a_rank_in_a_long_call(self, play: Play, count: int) -> None:
        """It names its threads when it answers again, however late; then the row appears."""
        book, client = play.attached(count)
        rank = book.rank(0)
        rank.silent = {"threads"}
        with book.happens():
            rank.data.threads[2] = "Thread-2"
            rank.event("thread", reason="started", threadId=2)
        before = len(client.of("thread"))
        book.wait(60)
        with book.happens():
            rank.answers()
        assert len(client.of("thread")) - before == (count == 1)

    def test_served_without_an_adapter(self, play: Play, count: int) -> None:
        """We do what the adapter would: the attach is done when `configurationDone` is answered."""
        book = play(count)
        for rank in book.ranks.values():
            rank.alone = True
        client = book.client()
        attach(client)
        told = [body["threadId"] for body in client.of("thread")]
        assert told == [book.thread(number) for number in range(count)]
        rank = book.rank(0)
        book.hits(LINE)
        client.ask("continue", threadId=book.thread(0))
        client.ask("pause", threadId=book.thread(0))
        assert rank.data.stopped
        client.ask("disconnect")
        assert not rank.configured

    def test_stopped_before_it_is_attached(self, play: Play, count: int) -> None:
        """An adapter keeps that back; without one we do, or it would be of a row that is not there.

        The program runs while breakpoints are set.
        """
        book = play(count)
        for rank in book.ranks.values():
            rank.alone = True
            rank.silent = {"configurationDone"}
        client = introduced(book)
        client.ask("attach", justMyCode=True)
        client.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": LINE}])
        book.hits(LINE)
        client.ask("configurationDone")
        assert client.ask("list").body["counts"]["connecting"] == count
        assert not client.of("stopped")
        book.answers()
        (stop,) = client.of("stopped")
        frames = client.ask("stackTrace", threadId=stop["threadId"]).body["stackFrames"]
        assert frames[0]["line"] == LINE

    def test_terminated_and_exited(self, play: Play, count: int) -> None:
        """`terminated` once, when the last is gone; `exited` with the code of the job."""
        book, client = play.attached(count)
        with book.happens():
            for rank in book.ranks.values():
                rank.event("exited", exitCode=3)
                rank.exits()
        assert client.of("exited") == [{"exitCode": 3}]
        assert len(client.of("terminated")) == 1
        assert book.finished

    def test_capabilities(self, play: Play, count: int) -> None:
        """What one rank does not offer any more, the session does not offer."""
        book, client = play.attached(count)
        with book.happens():
            book.rank(0).event("capabilities", capabilities={"supportsLogPoints": False})
        (told,) = client.of("capabilities")
        assert told == {"capabilities": {"supportsLogPoints": False}}


@ONE_OR_MORE
class TestPassedOn:
    """Events that clients get, with our ids, once where the ranks agree."""

    def test_output(self, play: Play, count: int) -> None:
        """Whole lines with their rank, equal ones folded; one rank: as it is."""
        book, client = play.attached(count)
        with book.happens():
            for rank in book.ranks.values():
                for piece in ("hello", " ", "world", "\n"):
                    rank.prints(piece)
                rank.prints(f"I am {rank.number}\n")
        book.wait(0.2)
        printed = [body for body in client.of("output") if body["category"] != "telemetry"]
        text = "".join(body["output"] for body in printed)
        several = "[0-2] hello world\n[0] I am 0\n[1] I am 1\n[2] I am 2\n"
        assert text == ("hello world\nI am 0\n" if count == 1 else several)

    def test_a_traceback_leads_to_its_lines(self, play: Play, count: int) -> None:
        """An editor shows each place as a link; a path that is none, and the text, have none."""
        book, client = play.attached(count)
        lines = [
            "Traceback (most recent call last):\n",
            f'  File "{PATH}", line 31, in batch_of\n    raise ValueError\n',
            '  File "<string>", line 1, in <module>\n',
            "ValueError: <b>\n",
        ]
        with book.happens():
            for rank in book.ranks.values():
                for line in lines:
                    rank.prints(line, "stderr")
        book.wait(0.2)
        printed = [body for body in client.of("output") if body["category"] == "stderr"]
        (placed,) = (body for body in printed if body.get("source"))
        assert (placed["source"], placed["line"]) == ({"path": PATH}, 31)
        assert placed["output"].endswith(f'  File "{PATH}", line 31, in batch_of\n')
        prefix = "" if count == 1 else "[0-2] "
        text = "".join(body["output"] for body in printed)
        assert text == "".join(prefix + line for line in "".join(lines).splitlines(keepends=True))

    def test_output_before_its_stop(self, play: Play, count: int) -> None:
        """What was printed before a stop is shown before it."""
        book, client = play.attached(count)
        with book.happens():
            for rank in book.ranks.values():
                rank.prints("loss 3\n", "stderr")
                rank.hits(LINE)
        book.wait(0.2)
        names = [event["event"] for event in client.events]
        assert names.index("output") < names.index("stopped")

    def test_telemetry(self, play: Play, count: int) -> None:
        """Telemetry of several ranks is for nobody; one rank's is passed on as it is."""
        book, client = play.attached(count)
        everybody_says(book, "output", category="telemetry", output="ptvsd", data={"a": 1})
        said = {"category": "telemetry", "output": "ptvsd", "data": {"a": 1}}
        assert (said in client.of("output")) == (count == 1)
        assert bool(client.of("output")) == (count == 1)

    def test_breakpoint(self, play: Play, count: int) -> None:
        """A breakpoint that moves in every rank is one change, with our id."""
        book, client = play.attached(count)
        moved = {"id": 0, "verified": True, "line": LINE + 1, "source": {"path": PATH}}
        everybody_says(book, "breakpoint", reason="changed", breakpoint=moved)
        changes = [body["breakpoint"] for body in client.of("breakpoint")]
        assert {change["id"] for change in changes} == {1}
        assert changes[-1]["line"] == LINE + 1

    @pytest.mark.parametrize(
        ("event", "body"),
        [
            ("module", {"module": {"id": 0, "name": "__main__", "path": PATH}}),
            ("loadedSource", {"source": {"path": PATH}}),
        ],
        ids=["module", "loadedSource"],
    )
    def test_once_for_each_path(
        self, play: Play, count: int, event: str, body: dict[str, Any]
    ) -> None:
        """The first rank that loads a file is enough."""
        book, client = play.attached(count)
        everybody_says(book, event, reason="new", **body)
        assert len(client.of(event)) == 1

    def test_process(self, play: Play, count: int) -> None:
        """Once, for the job."""
        book, client = play.attached(count)
        everybody_says(book, "process", name=PATH, systemProcessId=7, startMethod="attach")
        (process,) = client.of("process")
        assert ("3 ranks" in process["name"]) is (count == 3)
        assert ("systemProcessId" in process) is (count == 1)

    @pytest.mark.parametrize("event", PROGRESS)
    def test_progress(self, play: Play, count: int, event: str) -> None:
        """Each rank's own, told apart by our ids."""
        book, client = play.attached(count)
        everybody_says(book, event, progressId="p", **PROGRESS[event])
        ids = {body["progressId"] for body in client.of(event)}
        assert len(ids) == count
        assert "p" not in ids

    def test_invalidated(self, play: Play, count: int) -> None:
        """Variables only: VS Code would replay old stops for threads and stacks."""
        book, client = play.stopped(count)
        everybody_says(book, "invalidated", areas=["threads", "stacks"])
        assert client.of("invalidated") == []
        with book.happens():
            book.rank(0).event("invalidated", areas=["stacks", "variables"])
        assert client.of("invalidated") == [{"areas": ["variables"]}]

    def test_memory(self, play: Play, count: int) -> None:
        """The reference is ours."""
        book, client = play.stopped(count)
        everybody_says(book, "memory", memoryReference="0x1", offset=0, count=4)
        assert len({body["memoryReference"] for body in client.of("memory")}) == count


@ONE_OR_MORE
class TestDebugpysOwn:
    """What debugpy says to its own clients."""

    def test_sockets_and_waiting(self, play: Play, count: int) -> None:
        """`debugpyWaitingForServer` is for us alone, the sockets of one rank for its editor too."""
        book, client = play.attached(count)
        everybody_says(book, "debugpySockets", sockets=[])
        everybody_says(book, "debugpyWaitingForServer", host="127.0.0.1", port=1)
        assert bool(client.of("debugpySockets")) == (count == 1)
        assert not client.of("debugpyWaitingForServer")

    def test_child(self, play: Play, count: int) -> None:
        """`debugpyAttach` is never forwarded raw, but answered; this child is gone already."""
        book, client = play.attached(count)
        everybody_says(book, "debugpyAttach", subProcessId=77, connect={"host": "h", "port": 1})
        assert client.of("debugpyAttach") == []

    def test_unknown(self, play: Play, count: int) -> None:
        """An unknown event: as it is with one rank, dropped with more."""
        book, client = play.attached(count)
        everybody_says(book, "somethingNew", answer=42)
        assert client.of("somethingNew") == ([{"answer": 42}] if count == 1 else [])


@ONE_OR_MORE
def test_the_log_line_of_an_outlier_is_coloured(play: Play, count: int) -> None:
    """Where the client shows colours; every line leads to the logpoint's own."""
    book = play(count)
    plain, shown = book.client("plain"), book.client("shown")
    attach(plain)
    introduce(shown, supportsANSIStyling=True)
    shown.ask("attach", justMyCode=True)
    shown.ask("configurationDone")
    with book.happens():
        for rank in book.ranks.values():
            rank.logs(f"distances in {'mm' if rank.number == 2 else 'm'}\n", LINE)
    book.wait(0.2)
    place = {"category": "stdout", "source": {"path": PATH}, "line": LINE}
    if count == 1:
        assert {**place, "output": "distances in m\n"} in shown.of("output")
        return
    usual = {**place, "output": "[0-1] distances in m\n"}
    odd = {**place, "output": "[2] distances in mm", "outlier": True}
    assert plain.of("output") == [usual, {**odd, "output": f"{odd['output']}\n"}]
    coloured = f"\x1b[31m{odd['output']}\x1b[0m\n"
    assert shown.of("output") == [usual, {**odd, "output": coloured}]


def test_what_a_rank_says_to_its_session_is_not_shown(rehearse: Play) -> None:
    """Its message that it listens, where a debugger has come before it was printed."""
    book, client = rehearse.attached(2)
    with book.happens():
        book.rank(0).prints(
            "dap-mux: rank 0 of 2 listens for a debugger on h:1 (pid 7)\n", "stderr"
        )
        book.rank(1).prints("it listens for a debugger on h\n", "stderr")
    book.wait(0.2)
    assert [body["output"] for body in client.of("output")] == [
        "[1] it listens for a debugger on h\n"
    ]


def test_bad_events_are_dropped(play: Play) -> None:
    """A rank's bytes are hostile too: the session goes on."""
    book, client = play.stopped(2)
    rank = book.rank(0)
    with book.happens():
        rank.event("stopped", reason="step", threadId=1, hitBreakpointIds=[12345])
        rank.event("output", output="odd", variablesReference=0)
        rank.event("breakpoint", reason="changed", breakpoint={"verified": True, "id": 999})
    book.wait(1)
    assert frame_of(client, book.thread(1))


@ONE_OR_MORE
def test_a_mark_in_the_output_is_confirmed(play: Play, count: int) -> None:
    """Clients hear nothing of it; a rank that marks what is no number is not answered."""
    book, client = play.attached(count)
    for marked in (12_300, 24_600, "many", -1):
        everybody_says(book, "dapMuxMark", bytes=marked)
    for rank in book.ranks.values():
        asked = [text for text in rank.data.evaluated if "dapMuxMark " in text]
        assert [text for text in asked if len(text) < 99] == [
            "dapMuxMark 12300",
            "dapMuxMark 24600",
        ]
    assert not client.of("dapMuxMark")


@ONE_OR_MORE
def test_a_wait_in_a_condition_is_ended(play: Play, count: int) -> None:
    """Clients hear nothing of it, nor of one at a breakpoint that there is not."""
    book, client = play.attached(count)
    with book.quietly("the breakpoint compares"):
        set_one(client, condition="differ: loss")
    with book.happens():
        for rank in book.ranks.values():
            rank.holds(LINE, "1")
    assert [rank.held for rank in book.ranks.values()] == [None] * count
    everybody_says(book, "dapMuxHeld", breakpoint=99, hold=2, value="1")
    assert not client.of("dapMuxHeld")
    assert not client.of("stopped")


@ONE_OR_MORE
def test_a_value_that_is_not_finite_is_told(play: Play, count: int) -> None:
    """Once for each rank, and once for all where all have one in the same step."""
    book, client = play.attached(count)
    everybody_says(book, "dapMuxNotFinite", text="3 of 4", step=2, place="a.py:1 f", made="")
    everybody_says(book, "dapMuxNotFinite", text=7)
    told = [body["output"] for body in client.of("output")]
    assert (
        len([each for each in told if "not finite: 3 of 4, at a.py:1 f; to see" in each]) == count
    )
    together = [each for each in told if "at once, in step 2" in each]
    assert len(together) == (count > 1)


@ONE_OR_MORE
def test_a_step_is_compared(play: Play, count: int) -> None:
    """Clients hear nothing of one that is equal in all ranks."""
    book, client = play.attached(count)
    client.ask("setExceptionBreakpoints", filters=["diverged"])
    everybody_says(book, "dapMuxStep", step=2, order=[0, 2], digests={"": "a"})
    assert not client.of("dapMuxStep")


def test_a_rank_that_tells_more_of_itself_is_news(play: Play) -> None:
    """A launcher knows of ranks before they have a process: its pid comes later."""
    book, client = play.attached(2, events=["ranks"])
    assert [row["pid"] for row in client.ask("list").body["ranks"]] == [None, None]
    book.wait(0.1)
    book.know(1, pid=4711)
    assert [row["pid"] for row in client.ask("list").body["ranks"]] == [None, 4711]
    book.wait(0.1)
    assert [row["pid"] for row in client.of("ranks")[-1]["changed"]] == [4711]
