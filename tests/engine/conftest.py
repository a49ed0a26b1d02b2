"""The playbook as a fixture: what it wrote is compared with the test's golden transcript."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from dap_mux.engine import Settings
from tests.support.scripted.playbook import Playbook

TRANSCRIPTS: Final = Path(__file__).parent / "transcripts"
Play = Callable[..., Playbook]


@pytest.fixture
def play(request: pytest.FixtureRequest) -> Iterator[Play]:
    """`play(count, **settings)`: a session of `count` ranks whose transcript is golden."""
    books: list[Playbook] = []

    def made(count: int = 0, **settings: object) -> Playbook:
        books.append(Playbook(count, Settings(**settings)))  # type: ignore[arg-type]
        return books[-1]

    failed = request.session.testsfailed
    yield made
    if request.session.testsfailed == failed:
        text = _about(request) + "\n".join(book.finish() for book in books)
        _compare(text, _golden(request), regenerate=request.config.getoption("--regenerate"))


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
