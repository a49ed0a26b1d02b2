"""Every row of both tables is there, and has its place in a transcript."""

from __future__ import annotations

import re
from typing import Final

import pytest

from dap_mux.engine.routes import ROUTES
from dap_mux.engine.session.rank_events import EVENT_TABLE
from tests.engine.conftest import TRANSCRIPTS
from tests.support.schema import names

_TEXT: Final = "\n".join(path.read_text("utf-8") for path in sorted(TRANSCRIPTS.glob("*/*.txt")))
_OURS: Final = frozenset(
    """session list breakpoints cast comm compare array stacks why groups focus scope view lease
    release drop""".split()
)
_OF_DEBUGPY: Final = frozenset({"setDebuggerProperty"})
_NEWER = {"locations"}  # than the schema inside debugpy's wheel, the only one that is always there


@pytest.mark.parametrize("command", ROUTES)
def test_a_transcript_shows_the_request(command: str) -> None:
    client_says = re.search(rf"^\w+ > {command}\b", _TEXT, re.MULTILINE)
    client_hears = re.search(rf"^\w+ < {command}: ", _TEXT, re.MULTILINE)
    assert client_says
    assert client_hears


@pytest.mark.parametrize("event", EVENT_TABLE)
@pytest.mark.parametrize("how_many", ["one", "several"])
def test_the_event_with_one_rank_and_with_several(event: str, how_many: str) -> None:
    texts = (path.read_text("utf-8") for path in (TRANSCRIPTS / "events").glob(f"*-{how_many}.txt"))
    assert any(re.search(rf"^ranks? .+ > event {event}\b", text, re.MULTILINE) for text in texts)


def test_every_request_of_the_schema_has_a_row() -> None:
    assert set(ROUTES) == names().requests | _OURS | _OF_DEBUGPY | _NEWER


def test_every_event_of_the_schema_has_a_row() -> None:
    ours = {event for event in EVENT_TABLE if event.startswith(("debugpy", "dapMux"))}
    assert set(EVENT_TABLE) - ours == names().events


def test_nothing_that_is_refused_reaches_a_rank() -> None:
    refused = [command for command, route in ROUTES.items() if route.handler is None]
    told = set(
        re.findall(r"^ranks? .+ < (\w+)(?: |$)", _TEXT, re.MULTILINE)
    )  # an answer has a colon
    assert not told & set(refused)
    assert not told & _OURS


def test_every_transcript_has_its_test(request: pytest.FixtureRequest) -> None:
    """A transcript that no test writes any more proves nothing."""
    tests = "\n".join(path.read_text("utf-8") for path in TRANSCRIPTS.parent.glob("test_*.py"))
    named = set(re.findall(r"def test_(\w+)\(\s*(?:self,\s*)?play", tests))
    written = {path.stem.split("-")[0] for path in TRANSCRIPTS.glob("*/*.txt")}
    assert written <= named
