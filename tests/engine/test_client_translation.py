"""Clients that count from 0, speak URIs, sit on Windows or have the sources elsewhere."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from dap_mux.engine.state.client_translation import ClientTranslation, PathTranslation
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.handle_fields import PLACE_EVENTS
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, introduced
from tests.support.scripted.playbook import PATH, Playbook
from tests.support.scripted.scripted_clients import Client

Json = dict[str, Any]
POSIX: Final = [{"localRoot": "/job", "remoteRoot": "/app"}]
WINDOWS: Final = [{"localRoot": "C:\\work", "remoteRoot": "/app"}]
HERE: Final = "C:\\Work\\train.py"  # as the Windows editor spells it
BY_MAPPING: Final = "c:\\work\\train.py"


ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
PLACES: Final = st.recursive(
    ANYTHING,
    lambda inner: st.dictionaries(
        st.sampled_from(("breakpoint", "changed", "column", "line", "module", "path", "source")),
        inner | st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("name", PLACE_EVENTS)
@settings(deadline=None)
@given(body=PLACES)
def test_whatever_an_event_holds_is_translated_or_refused(name: str, body: object) -> None:
    """No exception of another kind: the other clients get the event in the same loop."""
    translation = ClientTranslation(lines=0, columns=0, paths=PathTranslation(uri=True))
    with contextlib.suppress(PeerFault):
        translation.event(name, Raw(json.dumps(body).encode()))


def joined(book: Playbook, /, name: str, path: str = PATH, line: int = LINE, **more: Any) -> Client:
    """A client with a breakpoint; `more`: what it says in `initialize`, and `attach`."""
    client = book.client(name)
    about = {key: more.pop(key) for key in ("linesStartAt1", "pathFormat") if key in more}
    client.ask("initialize", clientID="some", adapterID="debugpy", **about)
    client.ask("attach", **({"justMyCode": True} | more))
    told = client.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line}])
    assert told.body["breakpoints"][0]["verified"]
    client.ask("configurationDone")
    return client


def stands(client: Client, thread: int) -> tuple[str, int]:
    """Where the top frame of a thread is."""
    frame = client.ask("stackTrace", threadId=thread, levels=1).body["stackFrames"][0]
    return frame["source"]["path"], frame["line"]


def edges(book: Playbook) -> list[bool]:
    """Which clients have a translation."""
    return [client.translation is not None for client in book.engine.core.clients.values()]


def test_columns_from_0(play: Play) -> None:
    """Columns are counted apart from lines; a column that is unknown does not become -1."""
    book = play(1)
    client = book.client("zero")
    client.ask("initialize", adapterID="debugpy", columnsStartAt1=False)
    client.ask("attach", justMyCode=True)
    client.ask("configurationDone")
    book.hits(LINE, 0)
    frame = client.ask("stackTrace", threadId=book.thread(0)).body["stackFrames"][0]
    assert (frame["line"], frame["column"]) == (LINE, 0)
    completing = client.ask("completions", text="st", column=2, frameId=frame["id"])
    assert completing.body["targets"][0]["label"] == "step"


def test_uris(play: Play) -> None:
    """A client that names files by URI gets them back as it wrote them."""
    book, client = play.scene(1, joined, "uri", "file:///job/tr%61in.py", pathFormat="uri")
    assert book.rank(0).last_breakpoints == [{"line": LINE}]
    book.hits(LINE, 0)
    assert stands(client, book.thread(0)) == ("file:///job/tr%61in.py", LINE)


def test_windows_beside_linux(play: Play) -> None:
    """Both have the sources elsewhere: one file for the ranks, and each its own paths."""
    book, linux = play.scene(2, joined, "linux", pathMappings=POSIX, clientOS="unix")
    windows = joined(book, "windows", HERE, pathMappings=WINDOWS, clientOS="windows")
    assert edges(book) == [False, True]
    assert book.rank(0).last_breakpoints == [{"line": LINE}]
    book.hits(LINE, 0, 1)
    assert stands(linux, book.thread(0)) == (PATH, LINE)
    assert stands(windows, book.thread(0)) == (HERE, LINE)
    linux.ask("disconnect")
    assert book.rank(0).last_breakpoints == [{"line": LINE}]


def test_linux_beside_windows(play: Play) -> None:
    """The Windows editor came first: its paths are the session's, in one spelling."""
    book = play(2)
    for rank in book.ranks.values():
        rank.program.path = BY_MAPPING
    windows = joined(book, "windows", HERE.replace("Work", "work"), pathMappings=WINDOWS)
    linux = joined(book, "linux", pathMappings=POSIX, clientOS="unix")
    for rank in book.ranks.values():
        assert (rank.attached_with or {})["clientOS"] == "windows"
        assert rank.last_breakpoints == [{"line": LINE}]
    book.hits(LINE, 0, 1)
    assert stands(windows, book.thread(0)) == (HERE.replace("Work", "work"), LINE)
    assert stands(linux, book.thread(0)) == (PATH, LINE)


def test_two_on_windows(play: Play) -> None:
    """One says where its files are, the other shares that: one file, however it is spelt."""
    book = play(1)
    book.rank(0).program.path = BY_MAPPING
    first = joined(book, "first", HERE, pathMappings=[{**WINDOWS[0], "localRoot": "c:/work"}])
    second = joined(book, "second", "c:/WORK/train.py", line=8)
    assert book.rank(0).last_breakpoints == [{"line": LINE}, {"line": 8}]
    book.hits(LINE, 0)
    assert stands(first, book.thread(0)) == (HERE, LINE)
    assert stands(second, book.thread(0)) == ("c:/WORK/train.py", LINE)


@pytest.mark.parametrize(
    "spelt", ["C:\\WORK\\train.py", "c:/work/train.py"], ids=["capitals", "slashes"]
)
def test_windows_paths_however_they_are_spelt(play: Play, spelt: str) -> None:
    """Case and slashes are the client's own affair: it gets back what it wrote."""
    book = play(1)
    book.rank(0).program.path = BY_MAPPING
    client = joined(book, "windows", spelt, pathMappings=WINDOWS, clientOS="windows")
    assert book.rank(0).last_breakpoints == [{"line": LINE}]
    book.hits(LINE, 0)
    assert stands(client, book.thread(0)) == (spelt, LINE)


def test_another_os_after_windows(play: Play) -> None:
    """debugpy remembers the system of a client that has left: the next one names its own."""
    book = play(1)
    with book.quietly("a Windows editor came and went"):
        book.rank(0).program.path = BY_MAPPING
        windows = joined(book, "windows", BY_MAPPING, pathMappings=WINDOWS)
        windows.ask("disconnect")
        book.rank(0).program.path = PATH
        book.wait(1)
    joined(book, "linux", pathMappings=POSIX)
    assert (book.rank(0).attached_with or {})["clientOS"] == "unix"


def test_files_that_only_one_side_maps(play: Play) -> None:
    """A joiner on the ranks' own machine has no other roots than theirs."""
    book = play(1)
    joined(book, "laptop", pathMappings=POSIX)
    same = [{"localRoot": "/app", "remoteRoot": "/app"}]
    console = joined(book, "console", "/app/train.py", pathMappings=same)
    book.hits(LINE, 0)
    assert stands(console, book.thread(0)) == ("/app/train.py", LINE)
    assert book.rank(0).last_breakpoints == [{"line": LINE}]


def test_roots_that_differ_by_rank(play: Play) -> None:
    """Which file a path means may depend on the rank; the ways there are found by rank."""
    book = play(2)
    session = [
        {"localRoot": "/job", "remoteRoot": "/app", "ranks": "0"},
        {"localRoot": "/old", "remoteRoot": "/app", "ranks": "1"},
    ]
    other = [
        {"localRoot": "/new", "remoteRoot": "/app", "ranks": "0"},
        {"localRoot": "/was", "remoteRoot": "/app", "ranks": "1"},
    ]
    joined(book, "first", pathMappings=session)
    joiner = joined(book, "joiner", "/new/train.py", pathMappings=other)
    book.rank(1).program.path = "/old/train.py"
    book.hits(LINE, 0, 1)
    assert stands(joiner, book.thread(0)) == ("/new/train.py", LINE)
    assert stands(joiner, book.thread(1)) == ("/was/train.py", LINE)


def test_breakpoints_from_before_attach(play: Play) -> None:
    """Set before anybody knows where the client's files are: they count from attach on."""
    book = play(1)
    joined(book, "linux", pathMappings=POSIX)
    early = introduced(book, "early")
    told = early.ask("setBreakpoints", source={"path": BY_MAPPING}, breakpoints=[{"line": 8}])
    assert not told.body["breakpoints"][0]["verified"]
    assert book.rank(0).last_breakpoints == [{"line": LINE}]
    early.ask("attach", pathMappings=WINDOWS)
    assert book.rank(0).last_breakpoints == [{"line": LINE}, {"line": 8}]
    assert early.of("breakpoint")[-1]["breakpoint"]["source"]["path"] == BY_MAPPING
    early.ask("configurationDone")


def test_uris_from_before_attach(play: Play) -> None:
    """They come back as they were sent, though the files turn out to be elsewhere."""
    book = play(1)
    joined(book, "linux", pathMappings=POSIX)
    uri = "file:///c%3A/work/train.py"
    early = book.client("early")
    early.ask("initialize", adapterID="debugpy", pathFormat="uri", linesStartAt1=False)
    early.ask("setBreakpoints", source={"path": uri}, breakpoints=[{"line": 7}])
    early.ask("setFunctionBreakpoints", breakpoints=[{"name": "train"}])
    early.ask("attach", pathMappings=WINDOWS)
    early.ask("configurationDone")
    assert book.rank(0).last_breakpoints == [{"line": LINE}, {"line": 8}]
    told = [body["breakpoint"] for body in early.of("breakpoint")]
    placed = [(one["source"]["path"], one["line"]) for one in told if "line" in one]
    assert placed[-1] == (uri, 7)


def test_a_new_first_client(play: Play) -> None:
    """An observer stays while the controllers change: it is told the new session's paths."""
    book = play(1)
    with book.quietly("linux has come and gone; an observer on Windows stays"):
        first = joined(book, "linux", pathMappings=POSIX)
        observer = introduced(book, "observer")
        observer.ask("attach", role="observer", pathMappings=WINDOWS)
        first.ask("disconnect")
        book.wait(1)
        book.rank(0).program.path = "/home/u/train.py"
    next_roots = [{"localRoot": "/home/u", "remoteRoot": "/app"}]
    joined(book, "next", "/home/u/train.py", pathMappings=next_roots)
    book.hits(LINE, 0)
    assert observer.ask("list").body["ranks"][0]["path"] == BY_MAPPING


def test_the_usual_client_has_no_edge(play: Play) -> None:
    """DAP's defaults, and the session's own mappings, cost nothing."""
    book = play(1)
    with book.quietly("two clients with DAP's defaults and the same mappings"):
        for name in ("first", "second"):
            joined(book, name, pathMappings=POSIX, clientOS="unix")
    assert edges(book) == [False, False]
