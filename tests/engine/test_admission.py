"""The token: no request passes before it has been shown, and an `attach` can carry it."""

from __future__ import annotations

import json
from typing import Final

import pytest

from dap_mux.engine import Engine, Settings, inputs, outputs
from dap_mux.engine.admission import MISSING, WRONG, Token
from dap_mux.engine.routes import ROUTES
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.messages import decode
from dap_mux.pure.protocol.types import UNAUTHORIZED
from tests.engine.conftest import Play
from tests.engine.scenes import attach, attached, introduce, introduced
from tests.support.fake_rank.injected_calls import INJECTED
from tests.support.outputs import singly
from tests.support.scripted.playbook import PATH

SECRET: Final = "a-secret-that-no-transcript-may-hold"
BREAKPOINT: Final[dict[str, object]] = {"source": {"path": PATH}, "breakpoints": [{"line": 6}]}


def test_before_the_token_only_initialize(play: Play) -> None:
    """What an editor says around its attach is refused, and no rank hears of it."""
    book = play(2)
    stranger = introduced(book, "stranger", Token(SECRET))
    wishes: dict[str, dict[str, object]] = {
        "setBreakpoints": BREAKPOINT,
        "setExceptionBreakpoints": {"filters": ["raised"]},
        "configurationDone": {},
        "threads": {},
        "evaluate": {"expression": "1"},
        "list": {},
    }
    for command, arguments in wishes.items():
        answer = stranger.ask(command, **arguments)
        assert answer.refusal == MISSING
        assert answer.response is not None
        assert answer.response["body"]["error"]["id"] == UNAUTHORIZED
    stranger.ask("disconnect")
    assert stranger.closed
    assert not book.engine.core.flow.configured


def said(engine: Engine, seq: int, command: str, **arguments: object) -> list[outputs.Output]:
    """What comes of a request of client 1."""
    body = {"seq": seq, "type": "request", "command": command, "arguments": arguments}
    return engine.receive(inputs.ClientSaid(1, decode(json.dumps(body).encode())))


def with_a_stranger() -> Engine:
    """A session of one rank, and a client that has to show the token."""
    engine = Engine(INJECTED, Settings(owns_job=True))
    engine.receive(inputs.RankKnown(("job", 0), Endpoint("127.0.0.1", 5678, ready=True)))
    engine.receive(inputs.ClientConnected(1, False, Token(SECRET)))
    said(engine, 1, "initialize", adapterID="x")
    return engine


@pytest.mark.parametrize("command", sorted({*ROUTES, "nonsense"} - {"disconnect"}))
def test_no_request_passes_before_the_token(command: str) -> None:
    """Every row of the routing table: a refusal, and no effect on anything."""
    out = said(with_a_stranger(), 2, command, terminateDebuggee=True)
    assert {type(one) for one in out} <= {outputs.ToClient, outputs.CloseClient, outputs.Log}
    [answer] = [json.loads(one.body) for one in out if isinstance(one, outputs.ToClient)]
    assert (answer["command"], answer["success"]) == (command, False)


def test_a_stranger_cannot_end_the_job() -> None:
    """`disconnect` is answered, and its wish is not."""
    out = said(with_a_stranger(), 2, "disconnect", terminateDebuggee=True)
    assert [type(one) for one in out] == [outputs.ToClient, outputs.CloseClient]


def test_the_token_goes_no_further() -> None:
    """What is sent to the rank, kept of the client and logged does not hold it."""
    engine = with_a_stranger()
    out = said(engine, 2, "attach", token=SECRET, logToFile=True)
    [link] = [one.link for one in out if isinstance(one, outputs.Connect)]
    out += engine.receive(inputs.LinkUp(link))
    to_rank = [json.loads(one.body) for one in singly(out) if isinstance(one, outputs.ToRank)]
    assert "attach" in [request["command"] for request in to_rank]
    assert to_rank[-1]["arguments"]["logToFile"] is True, "the rest does"
    assert SECRET not in repr(out)
    assert SECRET not in repr(engine.core.clients[1])


def test_a_wrong_token(play: Play) -> None:
    """Refused with a word about the token, and closed."""
    book = play(1)
    stranger = introduced(book, "stranger", Token(SECRET))
    assert stranger.ask("attach", token=SECRET[:-1]).refusal == WRONG
    assert stranger.closed


def test_no_token(play: Play) -> None:
    """A stock configuration that does not know of it learns what is wanted."""
    book = play(1)
    stranger = introduced(book, "stranger", Token(SECRET))
    assert stranger.ask("attach", justMyCode=True).refusal == MISSING
    assert stranger.closed


def test_launch_wants_it_too(play: Play) -> None:
    """`launch` starts a process, so it is refused as `attach` is."""
    book = play(ranks_from_client=True)
    stranger = introduced(book, "stranger", Token(SECRET))
    assert stranger.ask("launch", program="x.py").refusal == MISSING
    assert stranger.closed


def test_a_friend_with_a_wrong_token(play: Play) -> None:
    """Who needs none and shows one means another session."""
    book = play(1)
    friend = book.client("friend")
    book.engine.core.clients[1].token = Token(SECRET)
    introduce(friend)
    assert friend.ask("attach", token="of another session").refusal == WRONG
    assert friend.closed


def test_a_stock_attach_carries_it(play: Play) -> None:
    """With the token it is a client like any other; the rank is not told what it was."""
    book = play(1)
    stranger = book.client("stranger", Token(SECRET))
    with book.quietly("the stranger attaches with the token"):
        attach(stranger, token=SECRET)
    assert not stranger.closed
    assert stranger.ask("threads").body["threads"]
    assert book.engine.core.clients[1].trusted


def test_a_lasting_notice(play: Play) -> None:
    """Told once to everybody who attaches, now or later."""
    book = play(2)
    book.feed(inputs.Notice("node1 is open to all", lasting=True))
    first = attached(book, "first")
    second = attached(book, "second")
    book.wait(1)
    for client in (first, second):
        said = [body["output"] for body in client.of("output")]
        assert said == ["dap-mux: node1 is open to all\n"]


def test_a_token_shows_itself_nowhere() -> None:
    token = Token(SECRET)
    connected = inputs.ClientConnected(1, False, token)
    assert SECRET not in f"{token} {token!r} {connected!r} {vars(type(token))}"
    assert token.matches(SECRET)
    assert not token.matches(SECRET + "x")
    assert not token.matches("é")
