"""Which exceptions stop ranks whose framework swallows what user code raises.

No process ends of such an exception, so `uncaught` alone would stop nobody: these ranks are to
stop where one leaves the user's code, unless a client has chosen otherwise.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from dap_mux.client.client import default_filters
from dap_mux.pure.endpoint import read_traits
from tests.engine.conftest import Play
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

SWALLOWING: Final = read_traits({"swallowsExceptions": True})
USUAL: Final = ["uncaught"]
OF_THESE: Final = ["uncaught", "userUnhandled"]


def beginning(book: Playbook) -> tuple[Client, dict[str, Any]]:
    """A client that has introduced itself, and what it was offered."""
    client = book.client()
    return client, client.ask("initialize", adapterID="debugpy").body


def goes_on(client: Client, chosen: list[str] | None) -> None:
    """The rest of its handshake, with these filters."""
    client.ask("attach", justMyCode=True)
    if chosen is not None:
        client.ask("setExceptionBreakpoints", filters=chosen)
    client.ask("configurationDone")


def filters(book: Playbook) -> str:
    """What ranks were sent last, as the transcript has it; "" where they were sent none."""
    lines = book.transcript.text().splitlines()
    asked = [line for line in lines if " < setExceptionBreakpoints filters=" in line]
    return asked[-1].rsplit("filters=")[1] if asked else ""


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [(None, OF_THESE), (OF_THESE, OF_THESE), (USUAL, USUAL), ([], [])],
    ids=["no list", "the defaults", "otherwise", "none"],
)
def test_a_client_is_offered_it_and_taken_at_its_word(
    play: Play, chosen: list[str] | None, sent: list[str]
) -> None:
    book = play()
    for number in range(2):
        book.know(number, traits=SWALLOWING)
    client, offered = beginning(book)
    assert default_filters(offered) == OF_THESE
    goes_on(client, chosen)
    assert filters(book) == f"[{', '.join(sent)}]"


def test_a_client_that_was_there_before_is_told_and_need_not_choose(play: Play) -> None:
    """Its editor has asked for the defaults of then, and asks no more; what it chooses counts."""
    book = play()
    client, offered = beginning(book)
    assert default_filters(offered) == USUAL
    goes_on(client, USUAL)
    book.know(0, traits=SWALLOWING)
    told = client.of("capabilities")[-1]["capabilities"]
    assert default_filters(told) == OF_THESE
    assert filters(book) == "[uncaught, userUnhandled]"
    client.ask("setExceptionBreakpoints", filters=USUAL)
    assert filters(book) == "[uncaught]"


def test_a_client_that_comes_before_the_first_rank_is_offered_it(play: Play) -> None:
    """Where the session knows of ranks to come that their framework swallows exceptions."""
    book = play(swallows_exceptions=True)
    client, offered = beginning(book)
    assert default_filters(offered) == OF_THESE
    goes_on(client, USUAL)
    book.know(0, traits=SWALLOWING)
    assert filters(book) == "[uncaught]", "it is taken at its word"
