"""What a session makes of ranks with an older debugpy: it says so, asks otherwise, or refuses."""

from __future__ import annotations

import pytest

from dap_mux.engine.ranks import patching
from tests.engine.conftest import Play
from tests.engine.scenes import attach
from tests.support.scripted.playbook import Playbook

UPGRADE = "pip install 'debugpy>=1.8.14'"


def attached(play: Play, debugpy: str) -> tuple[Playbook, dict[str, object]]:
    """Two ranks, the first with this debugpy; the entry of that one in `list`."""
    book = play(2)
    book.ranks["job", 0].debugpy = debugpy
    client = book.client()
    attach(client)
    book.wait(1)
    return book, client.ask("list").body["ranks"][0]


@pytest.mark.parametrize("debugpy", ["1.8.14", "1.8.22", "2.0.0", "1.9.0rc1", "who knows"])
def test_what_is_tested_or_unknown_is_attached(play: Play, debugpy: str) -> None:
    _, rank = attached(play, debugpy)
    assert rank["state"] == "running"
    assert patching.old(debugpy) == patching.too_old(debugpy) == ""


def test_what_is_older_is_attached_and_named(play: Play) -> None:
    _, rank = attached(play, "1.8.5")
    assert rank["state"] == "running"
    said = patching.old("1.8.5")
    assert "1.8.5" in said
    assert UPGRADE in said


def test_what_is_too_old_is_refused_by_name(play: Play) -> None:
    """The other rank is attached, and this one is left as any other is."""
    book, rank = attached(play, "1.6.7")
    assert rank["reason"] == patching.too_old("1.6.7")
    assert "1.6.7" in str(rank["reason"])
    assert UPGRADE in str(rank["reason"])
    assert not book.ranks["job", 0].configured
    assert book.ranks["job", 1].configured


@pytest.mark.parametrize(("debugpy", "prints"), [("1.8.20", True), ("1.8.21", False), ("1", False)])
def test_which_print_what_they_should_answer(debugpy: str, prints: bool) -> None:
    assert patching.prints_values(debugpy) is prints
