"""The playbook as a fixture: what it wrote is compared with the test's golden transcript."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import pytest

from dap_mux.engine import Settings
from tests.engine.scenes import attached, introduced, stopped
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

TRANSCRIPTS: Final = Path(__file__).parent / "transcripts"
Json = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


class Play:
    """`play(count, **settings)` is a session of `count` ranks."""

    def __init__(self) -> None:
        self.books: list[Playbook] = []

    def __call__(self, count: int = 0, **settings: Any) -> Playbook:
        self.books.append(Playbook(count, Settings(**settings)))
        return self.books[-1]

    def attached(
        self, count: int, name: str = "client", settings: Json | None = None, **more: Any
    ) -> tuple[Playbook, Client]:
        """A session, and its client (see `scenes.attached`)."""
        book = self(count, **settings or {})
        return book, attached(book, name, **more)

    def stopped(
        self, count: int, *ranks: int, settings: Json | None = None, **more: Any
    ) -> tuple[Playbook, Client]:
        """A session whose ranks have stopped, and its client (see `scenes.stopped`)."""
        book = self(count, **settings or {})
        return book, stopped(book, *ranks, **more)

    def introduced(self, count: int) -> tuple[Playbook, Client]:
        """A session with default settings, and a client that has been introduced."""
        return self.scene(count, introduced)

    def scene(
        self,
        count: int,
        begin: Callable[Concatenate[Playbook, P], T],
        *args: P.args,
        **more: P.kwargs,
    ) -> tuple[Playbook, T]:
        """A session with default settings, and whoever `begin` makes take part in it."""
        book = self(count)
        return book, begin(book, *args, **more)

    def finish(self) -> str:
        """Check what only the end shows; return the transcripts."""
        return "\n".join(book.finish() for book in self.books)


@pytest.fixture
def play(request: pytest.FixtureRequest) -> Iterator[Play]:
    """Sessions whose transcript is golden."""
    made = Play()
    failed = request.session.testsfailed
    yield made
    if request.session.testsfailed == failed:
        text = _about(request) + made.finish()
        _compare(text, _golden(request), regenerate=request.config.getoption("--regenerate"))


@pytest.fixture
def rehearse(request: pytest.FixtureRequest) -> Iterator[Play]:
    """As `play`, without a transcript."""
    made = Play()
    failed = request.session.testsfailed
    yield made
    if request.session.testsfailed == failed:
        made.finish()


def _golden(request: pytest.FixtureRequest) -> Path:
    """`stops/first_stop-vscode.txt` for `test_first_stop[vscode]` in `test_stops.py`."""
    module = request.path.stem.removeprefix("test_")
    name = re.sub(r"[^\w.]+", "-", request.node.name.removeprefix("test_")).strip("-")
    return TRANSCRIPTS / module / f"{name}.txt"


def _about(request: pytest.FixtureRequest) -> str:
    """The test's own words."""
    text = inspect.getdoc(request.function) or ""
    return "".join(f"# {line}\n" for line in text.splitlines())


def _compare(text: str, golden: Path, *, regenerate: bool) -> None:
    if regenerate:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, "utf-8")
        return
    assert golden.exists(), f"no {golden.name}: read this, then run with --regenerate\n{text}"
    assert text.splitlines() == golden.read_text("utf-8").splitlines(), golden.name
