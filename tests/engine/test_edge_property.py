"""Whatever a client does: from 0 or from 1, by path or URI, on Windows or not, it is one session.

The same things happen to a client with DAP's defaults and to one that counts and spells
differently. What the second hears is turned back by the field names alone, and must then be what
the first heard; the ranks must not have noticed anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

Json = dict[str, Any]
LEAD: Final = [{"localRoot": "/job", "remoteRoot": "/app"}]
OWN: Final = {"windows": "c:\\work", "elsewhere": "/home/u/my job"}
LINES: Final = frozenset({"line", "endLine"})
COLUMNS: Final = frozenset({"column", "endColumn"})
PATHS: Final = ("/job/train.py", "/job/my lib/über.py", "/usr/lib/python3/x.py", "<string>")


@dataclass(frozen=True)
class Manner:
    """How a client counts and spells. `root`: a key of `OWN`, or "" for the session's own."""

    lines: int = 1
    columns: int = 1
    uri: bool = False
    root: str = ""

    @property
    def about(self) -> Json:
        """What it says in `initialize`; with DAP's defaults, nothing."""
        first = {"linesStartAt1": bool(self.lines), "columnsStartAt1": bool(self.columns)}
        said = {key: value for key, value in first.items() if not value}
        return {**said, **({"pathFormat": "uri"} if self.uri else {})}

    @property
    def attach(self) -> Json:
        """What it says in `attach`."""
        if not self.root:
            return {"justMyCode": True}
        mapping = {"localRoot": OWN[self.root], "remoteRoot": "/app"}
        return {"justMyCode": True, "pathMappings": [mapping]}

    def says(self, value: Any, key: str = "") -> Any:
        """Turn arguments in the session's terms into this client's."""
        return self._walk(value, key, self.lines - 1, self.columns - 1, self._spelt)

    def means(self, value: Any, key: str = "") -> Any:
        """Turn what this client was told back into the session's terms."""
        return self._walk(value, key, 1 - self.lines, 1 - self.columns, self._read)

    def _walk(self, value: Any, key: str, lines: int, columns: int, path: Any) -> Any:
        if isinstance(value, dict):
            return {k: self._walk(v, k, lines, columns, path) for k, v in value.items()}
        if isinstance(value, list):
            return [self._walk(item, key, lines, columns, path) for item in value]
        if key in LINES or key in COLUMNS:
            by = lines if key in LINES else columns
            return value if value is None else value + by
        return path(value) if key == "path" and value is not None else value

    def _spelt(self, path: str) -> str:
        if self.root and path.startswith("/job/"):
            path = OWN[self.root] + path.removeprefix("/job")
            path = path.replace("/", "\\") if self.root == "windows" else path
        if not self.uri or path.startswith("<"):
            return path
        path = path.replace("\\", "/")
        return "file://" + quote(path if path.startswith("/") else f"/{path}", safe="/:")

    def _read(self, path: str) -> str:
        leaks = (self.uri and path.startswith("/")) or (self.root and "/job" in path)
        if leaks:
            return f"not this client's: {path}"
        if self.uri and path.startswith("file://"):
            path = re.sub(r"^/(?=[a-z]:)", "", unquote(path.removeprefix("file://")))
        path = path.replace("\\", "/")
        own = OWN.get(self.root, "/job").replace("\\", "/")
        return "/job" + path.removeprefix(own) if path.startswith(own) else path


def source(path: str) -> Json:
    return {"source": {"path": path}}


NUMBER: Final = st.integers(min_value=1, max_value=14)
PATH: Final = st.sampled_from(PATHS)
BREAKPOINT: Final = st.fixed_dictionaries(
    {"line": NUMBER}, optional={"column": NUMBER, "condition": st.just("step == 3")}
)
ACTION: Final = st.one_of(
    st.tuples(
        st.just("setBreakpoints"),
        st.builds(
            lambda path, wanted: {**source(path), "breakpoints": wanted},
            PATH,
            st.lists(BREAKPOINT, max_size=3),
        ),
    ),
    st.tuples(
        st.just("gotoTargets"),
        st.builds(lambda path, line: {**source(path), "line": line}, PATH, NUMBER),
    ),
    st.tuples(st.just("source"), st.builds(lambda p: {**source(p), "sourceReference": 0}, PATH)),
    st.tuples(st.sampled_from(["stackTrace", "next", "continue", "pause"]), NUMBER),
    st.tuples(st.sampled_from(["list", "threads"]), st.just(None)),
    st.tuples(st.just("modules"), st.just({"startModule": 0})),
    st.tuples(st.just("focus"), st.integers(min_value=0, max_value=1)),
    st.tuples(st.sampled_from(["hits", "raises", "loads"]), st.tuples(NUMBER, PATH)),
)
MANNER: Final = st.builds(
    Manner, st.integers(0, 1), st.integers(0, 1), st.booleans(), st.sampled_from(["", *OWN])
)


class Run:
    """One client's session: a lead with the session's mappings, and the client beside it."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self.book = Playbook(2)
        lead = self.book.client("lead")
        lead.ask("initialize", adapterID="debugpy")
        lead.ask("attach", pathMappings=LEAD)
        lead.ask("configurationDone")
        self.heard: list[Json] = []
        self.client = _Listener(self.book, len(self.book._everybody) + 1, self)
        self.book._connect(lambda number: self.client)
        self.client.ask("initialize", adapterID="debugpy", **manner.about)
        self.client.ask("attach", **manner.attach)
        self.client.ask("configurationDone")

    def does(self, action: str, what: Any) -> None:
        """Let one thing happen, and a second pass."""
        if action in ("hits", "raises", "loads"):
            with self.book.happens():
                self._happens(action, *what)
        else:
            self.client.ask(action, **self.manner.says(self._arguments(action, what)))
        self.book.wait(1)

    def _arguments(self, action: str, what: Any) -> Json:
        if isinstance(what, dict):
            return what
        if what is None:
            return {}
        return {"rank": what} if action == "focus" else {"threadId": self.book.thread(what % 2)}

    def _happens(self, what: str, line: int, path: str) -> None:
        rank = self.book.rank(line % 2)
        if what == "loads":
            module = {"id": 1, "name": "m", "path": path}
            rank.event("module", reason="new", module=module)
            rank.event("loadedSource", reason="new", source={"path": path})
            rank.event("output", output="x\n", category="stdout", line=line, **source(path))
        elif rank.data.stopped is None and rank.due is None:
            rank.hits(line) if what == "hits" else rank.raises()

    @property
    def ranks_heard(self) -> list[str]:
        """What the ranks were told."""
        lines = self.book.transcript.text().splitlines()
        return [line for line in lines if re.match(r"ranks? [\d,-]+ < ", line)]


class _Listener(Client):
    def __init__(self, book: Playbook, number: int, run: Run) -> None:
        super().__init__(book, number, "client")
        self._run = run

    def hears(self, message: Json) -> None:
        super().hears(message)
        self._run.heard.append(self._run.manner.means(message))


@given(manner=MANNER, actions=st.lists(ACTION, min_size=1, max_size=12))
def test_it_is_one_session(manner: Manner, actions: list[tuple[str, Any]]) -> None:
    usual, other = Run(Manner()), Run(manner)
    for action, what in [("hits", (6, PATHS[0])), *actions]:
        usual.does(action, what)
        other.does(action, what)
        assert other.heard == usual.heard
    assert other.ranks_heard == usual.ranks_heard
    usual.book.finish()
    other.book.finish()
