"""Where files lie: mappings for each rank, files that are missing or differ, and remote ones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from dap_mux.pure.rank_sets import Mesh
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attach, attached, introduced, stopped, told_by_us
from tests.support.fake_rank.injected_calls import injected_call
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

HOME = "/home/me/proj"
FILE = f"{HOME}/train.py"


def mapping(local: str, remote: str, **more: object) -> dict[str, Any]:
    return {"localRoot": local, "remoteRoot": remote, **more}


def two_hosts(play: Play, **settings: object) -> Playbook:
    """Ranks 0-1 on node1, 2-3 on node2."""
    book = play(0, **settings)
    for number in range(4):
        book.know(number, host=f"10.0.0.{1 + number // 2}", host_name=f"node{1 + number // 2}")
    return book


def set_in(client: Client, path: str = FILE, **wanted: Any) -> dict[str, Any]:
    body = client.ask(
        "setBreakpoints", source={"path": path}, breakpoints=[{"line": LINE, **wanted}]
    )
    told: dict[str, Any] = body.body["breakpoints"][0]
    return told


def last_news(client: Client) -> dict[str, Any]:
    news: dict[str, Any] = client.of("breakpoint")[-1]["breakpoint"]
    return news


def given(book: Playbook) -> list[Any]:
    """The mappings that each rank was attached with."""
    return [(rank.attached_with or {}).get("pathMappings") for rank in book.ranks.values()]


def asked_of_files(book: Playbook) -> list[list[list[str]]]:
    """What each rank was asked about files: path and wanted digest, or path."""
    calls = [map(injected_call, rank.data.evaluated) for rank in book.ranks.values()]
    return [
        [list(call.values[:-1]) for call in each if call and call.module == "file_probe"]
        for each in calls
    ]


def test_each_rank_gets_its_own_mappings(play: Play) -> None:
    """Plain ones, as debugpy takes them: those for its host and rank, with a ranks file's root."""
    book = two_hosts(play, meshes={"job": Mesh.parse("dp=2,tp=2")})
    book.know(3, host="10.0.0.2", host_name="node2", remote_root="/scratch/r3")
    client = book.client()
    entries = [
        mapping(HOME, "/opt/all"),
        mapping(HOME, "/data/node2", hosts=["node2"]),
        mapping("/libs", "/opt/libs", ranks="ranks(tp=1)"),
    ]
    attach(client, pathMappings=entries)
    libs = mapping("/libs/", "/opt/libs/")
    assert given(book) == [
        [mapping(f"{HOME}/", "/opt/all/")],
        [mapping(f"{HOME}/", "/opt/all/"), libs],
        [mapping(f"{HOME}/", "/data/node2/")],
        [mapping(f"{HOME}/", "/scratch/r3/"), libs],
    ]


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ([mapping(HOME, "data")], 'entry 1: remoteRoot is "data": give the full path'),
        ([mapping(HOME, "/d"), mapping(HOME, "/e", ranks="0-")], "entry 2: ranks: "),
        ({"localRoot": HOME}, "pathMappings must be a list"),
    ],
    ids=["root", "ranks", "list"],
)
def test_a_bad_mapping_is_refused(play: Play, wrong: object, complaint: str) -> None:
    """At `attach`, and a better one may follow."""
    _, client = play.introduced(1)
    assert complaint in client.ask("attach", pathMappings=wrong).refusal
    client.ask("attach", pathMappings=[mapping(HOME, "/data")])
    assert client.of("initialized")
    client.ask("configurationDone")


def test_a_workspace_that_no_editor_has_filled_in(play: Play) -> None:
    """It is where dap-mux was started, and that is said."""
    book = play(1, folder=HOME)
    client = introduced(book)
    client.ask("attach", pathMappings=[mapping("${workspaceFolder}", "/data")])
    assert given(book) == [[mapping(f"{HOME}/", "/data/")]]
    client.ask("configurationDone")
    assert told_by_us(client) == [f"dap-mux: pathMappings: the workspace is taken to be {HOME}\n"]


def test_a_workspace_that_the_client_names(play: Play) -> None:
    """`cwd` and `workspaceFolder` are known words for it: nothing to say."""
    book = play(1, folder="/elsewhere")
    client = introduced(book)
    unfilled = "${workspaceFolder}"
    entry = mapping(".", ".")
    client.ask("attach", workspaceFolder=unfilled, cwd=HOME, pathMappings=[entry])
    client.ask("configurationDone")
    assert given(book) == [[mapping(f"{HOME}/", ".")]]
    assert told_by_us(client) == []


def test_mappings_of_the_client_before_are_undone(play: Play) -> None:
    """debugpy keeps them where an attach brings none."""
    book = play(1)
    first = attached(book, pathMappings=[mapping(HOME, "/job")])
    with book.quietly("the first leaves"):
        first.ask("disconnect")
        book.wait(1)
    attach(book.client("second"))
    assert given(book) == [[mapping("/", "/")]]


def test_a_missing_file_names_the_ranks_and_a_mapping(play: Play) -> None:
    """The answer has what debugpy said; the mapping that would fit follows as an event."""
    book = two_hosts(play)
    for number in (2, 3):
        book.rank(number).missing.add(FILE)
        book.rank(number).disk.loaded = {"/data/x/train.py": True, "/lib/train.py": False}
    client = attached(book)
    told = set_in(client)
    assert told["verified"]
    assert told["message"] == f"file missing on ranks 2-3 (node2): {FILE}"
    assert last_news(client)["message"] == (
        f"file missing on ranks 2-3 (node2): {FILE}; "
        f'add {{"localRoot": "{HOME}", "remoteRoot": "/data/x", "hosts": ["node2"]}} '
        "to pathMappings"
    )
    assert last_news(client)["verified"]


def test_the_proposed_mapping_works_when_pasted(play: Play) -> None:
    """It is read back from the message."""
    book = two_hosts(play)
    for number in (2, 3):
        book.rank(number).missing.add(FILE)
        book.rank(number).disk.loaded = {"/data/x/train.py": True}
    first = attached(book)
    with book.quietly("a breakpoint, and its news"):
        set_in(first)
    proposed = re.search(r"add (\{.*\}) to", last_news(first)["message"])
    assert proposed
    with book.quietly("the first leaves"):
        first.ask("disconnect")
        book.wait(1)
    second = introduced(book, "second")
    second.ask("attach", pathMappings=[json.loads(proposed[1])])
    second.send("configurationDone")
    assert "message" not in set_in(second)


def test_a_mapping_that_leads_nowhere(play: Play) -> None:
    """The rank's own path is named, and what to write instead."""
    book = play(2)
    for rank in book.ranks.values():
        rank.missing.add("/job/old/train.py")
        rank.disk.loaded = {"/job/new/train.py": True}
    client = attached(book, pathMappings=[mapping(HOME, "/job/old")])
    set_in(client)
    assert last_news(client)["message"] == (
        "file missing on ranks 0-1: /job/old/train.py; in pathMappings use "
        f'{{"localRoot": "{HOME}", "remoteRoot": "/job/new"}} for this localRoot'
    )


def test_an_edited_copy_is_named(play: Play) -> None:
    """The client's files are on this machine: every rank is asked once for its own."""
    book = two_hosts(play)
    book.local = {FILE: "same"}
    for number in (2, 3):
        book.rank(number).disk.texts[FILE] = "edited"
    client = attached(book)
    told = set_in(client)
    assert told["verified"]
    assert last_news(client)["message"] == f"file differs on ranks 2-3 (node2): {FILE}"
    assert last_news(client)["verified"]


def test_a_rank_is_asked_once_for_a_file(play: Play) -> None:
    """Not once for a breakpoint; a new file, or another process, is asked again."""
    book = play(2)
    book.local = {FILE: "same", PATH: "same"}
    client = attached(book)
    for line in (3, 4, 5):
        client.ask("setBreakpoints", source={"path": FILE}, breakpoints=[{"line": line}])
    assert asked_of_files(book) == [[[FILE, "same"], [PATH, "same"]]] * 2
    book.lose(1)
    book.wait(1)
    assert [len(asked) for asked in asked_of_files(book)] == [2, 4]


def test_a_look_that_is_cut_off_is_no_news(play: Play) -> None:
    """A program that ends has no answer any more: its breakpoints stay as clients know them."""
    book = play(1)
    book.local = {FILE: "same"}
    client = attached(book)
    book.rank(0).silent = {"evaluate"}
    assert set_in(client)["verified"]
    book.lose(0)
    assert client.of("breakpoint") == []


@pytest.mark.parametrize(
    ("local", "owns_job"), [({FILE: "same"}, True), (None, False)], ids=["own job", "elsewhere"]
)
def test_nothing_is_compared(play: Play, local: dict[str, str] | None, owns_job: bool) -> None:
    """Our own ranks read the file that the editor shows; a client's from elsewhere is not seen."""
    book = play(2, owns_job=owns_job)
    book.local = local
    set_in(attached(book))
    assert asked_of_files(book) == [[], []]


def test_a_file_edited_while_its_ranks_run(play: Play) -> None:
    """The editor sends its breakpoints again after each change."""
    book = play(1)
    book.local = {FILE: "same"}
    client = attached(book)
    set_in(client)
    assert not client.of("breakpoint")
    book.local[FILE] = "edited here"
    assert "message" not in set_in(client)
    assert last_news(client)["message"] == f"file differs: {FILE}"


def test_a_file_there_that_is_not_the_one_that_runs(play: Play) -> None:
    """A stale copy at the same path would take the breakpoint and never stop."""
    book = play(1)
    book.local = {FILE: "new"}
    book.rank(0).disk.texts = {FILE: "stale", "/data/run/train.py": "new"}
    book.rank(0).disk.loaded = {"/data/run/train.py": True}
    client = attached(book)
    set_in(client)
    assert last_news(client)["message"] == (
        f'file differs: {FILE}; add {{"localRoot": "{HOME}", "remoteRoot": "/data/run"}} '
        "to pathMappings"
    )


def test_a_dot_is_where_each_rank_runs(play: Play) -> None:
    """Known from the rank itself, so that its own path can be named."""
    book = play(2)
    book.rank(1).disk.cwd = "/other"
    book.rank(1).missing.add("/other/train.py")
    client = attached(book, pathMappings=[mapping(HOME, ".")])
    told = set_in(client)
    assert told["message"] == "file missing on rank 1: /other/train.py"


def test_a_rank_that_talks_nonsense_about_a_file(play: Play) -> None:
    """A rank's bytes are hostile too: its own word on the breakpoint stays."""
    book = play(1)
    book.rank(0).missing.add(FILE)
    client = attached(book)
    book.rank(0).disk.answer = lambda expression: "[1, 2"  # type: ignore[method-assign]
    told = set_in(client)
    assert told["message"] == f"file missing: {FILE}"


class TestRemoteFiles:
    """A frame whose file the client lacks carries its text; others keep their plain path."""

    def looking(self, book: Playbook, /) -> Client:
        """A client at a stop in a file that it lacks, with a breakpoint in one that it has."""
        book.local = {FILE: "same"}
        client = stopped(book)
        with book.quietly("a breakpoint in a file that the client has"):
            set_in(client)
        return client

    def frames(self, client: Client, book: Playbook, rank: int = 0) -> list[dict[str, Any]]:
        answer = client.ask("stackTrace", threadId=book.thread(rank))
        return [frame["source"] for frame in answer.body["stackFrames"]]

    def test_a_file_that_only_the_rank_has(self, play: Play) -> None:
        """Its text comes through `source`, also when the rank runs on, and stays known."""
        book = play(2)
        book.rank(0).disk.texts[PATH] = "print('remote')\n"
        client = self.looking(book)
        source = self.frames(client, book)[0]
        number = source["sourceReference"]
        assert source["path"] == PATH
        assert number > 0
        assert self.frames(client, book, 1)[0]["sourceReference"] == number, "the same for a host"
        client.ask("continue", threadId=book.thread(0))
        wanted = {"source": source, "sourceReference": number}
        body = client.ask("source", **wanted).body
        assert body == {"content": "print('remote')\n", "mimeType": "text/x-python"}
        with book.quietly("both ranks end"):
            for each in (0, 1):
                book.lose(each)
        assert client.ask("source", **wanted).body == body

    @pytest.mark.parametrize("local", [{PATH: "same"}, None], ids=["both", "elsewhere"])
    def test_nothing_is_fetched(self, play: Play, local: dict[str, str] | None) -> None:
        """Of a file that both have; and of no file where the client is elsewhere."""
        book = play(1)
        book.local = local
        client = stopped(book)
        assert {s["sourceReference"] for s in self.frames(client, book)} == {0}

    def test_a_file_that_cannot_be_read(self, play: Play) -> None:
        """The error says which and why."""
        book, client = play.scene(1, self.looking)
        source = self.frames(client, book)[0]
        book.rank(0).missing.add(PATH)
        refusal = client.ask("source", source=source, sourceReference=0).refusal
        assert refusal == f"cannot read {PATH}: No such file or directory"

    def test_a_path_alone(self, play: Play) -> None:
        """A client that has seen no frame of it asks so: the rank in focus reads the file."""
        book = play(2)
        book.rank(0).disk.texts[PATH] = "print('remote')\n"
        client = attached(book)
        wanted: dict[str, Any] = {"source": {"path": PATH}, "sourceReference": 0}
        assert client.ask("source", **wanted).refusal == "Source unavailable"
        wanted["read"] = True
        assert client.ask("source", **wanted).body["content"] == "print('remote')\n"
        for each in (0, 1):
            book.lose(each)
        assert client.ask("source", **wanted).refusal == "no rank is attached yet"

    def test_nobody_left_to_read_it(self, play: Play) -> None:
        """A text that was never fetched goes with the host's last rank."""
        book, client = play.scene(1, self.looking)
        number = self.frames(client, book)[0]["sourceReference"]
        book.lose(0)
        refusal = client.ask("source", sourceReference=number).refusal
        assert refusal == f"no rank of 127.0.0.1 is left to read {PATH}"

    def test_a_breakpoint_in_a_remote_file(self, play: Play) -> None:
        """The editor sends our number back; to the ranks its path says it all."""
        book, client = play.scene(1, self.looking)
        source = self.frames(client, book)[0]
        told = client.ask("setBreakpoints", source=source, breakpoints=[{"line": 7}])
        assert told.body["breakpoints"][0]["verified"]
        targets = client.ask("gotoTargets", source=source, line=7).body["targets"]
        assert targets[0]["line"] == 7

    def test_a_disk_that_hangs(self, play: Play) -> None:
        """A stack waits for it half a second, then goes out as it came."""
        book, client = play.scene(1, self.looking)
        book.disk_hangs = True
        asked = client.ask("stackTrace", threadId=book.thread(0))
        assert asked.response is None
        book.wait(0.5)
        assert asked.body["stackFrames"][0]["source"]["sourceReference"] == 0


def test_ranks_are_not_asked_while_others_are_attached(play: Play) -> None:
    """They have better things to do, and so has this machine."""
    book = play(2)
    book.local = {PATH: "same"}
    client = book.client()
    book.rank(1).silent = {"configurationDone"}
    attach(client)
    assert asked_of_files(book) == [[], []]
    book.wait(0.3)
    assert asked_of_files(book) == [[[PATH, "same"]], []]
    book.rank(1).answers()
    book.wait(0.3)
    assert asked_of_files(book) == [[[PATH, "same"]]] * 2
