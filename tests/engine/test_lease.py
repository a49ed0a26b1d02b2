"""An agent drives until somebody else does, or until it is gone."""

from __future__ import annotations

import json

from dap_mux.engine import inputs, outputs
from dap_mux.pure.protocol.messages import decode
from tests.engine.conftest import Play
from tests.engine.scenes import LINE, attached, stopped_ranks
from tests.support.scripted.playbook import Playbook
from tests.support.scripted.scripted_clients import Client

AGENT = "dap-mux mcp"
HUMAN = "vscode"


def both(play: Play) -> tuple[Playbook, Client, Client]:
    """Two ranks that are stopped, an editor and an agent."""
    book = play(2)
    human, agent = attached(book, "human", kind=HUMAN), attached(book, "agent", kind=AGENT)
    with book.quietly("both ranks stop"):
        book.hits(LINE)
        book.wait(0.1)
    return book, human, agent


def said(client: Client) -> list[str]:
    """The session's own words to a client."""
    texts = (str(body["output"]).strip() for body in client.of("output"))
    return [text for text in texts if text.startswith("dap-mux: ")]


def test_whoever_moves_a_rank_takes_over(play: Play) -> None:
    """The agent steps, the editor continues; the agent is told, refused, and takes it back."""
    book, human, agent = both(play)
    assert agent.ask("lease").body == {"holder": "", "act": "", "lostTo": ""}
    agent.ask("cast", ranks="0-1", command="n")
    book.wait(1)
    held = {"holder": AGENT, "act": "stepping 0-1", "lostTo": ""}
    assert agent.ask("lease").body == human.ask("lease").body == held
    assert said(human) == [
        f"dap-mux: {AGENT} drives; whatever you let run, step or pause takes over"
    ]
    human.ask("pause", threadId=book.thread(0))
    assert said(agent)[-1] == f"dap-mux: {HUMAN} takes over from {AGENT}"
    assert agent.ask("lease").body == {"holder": "", "act": "", "lostTo": HUMAN}
    refusal = agent.ask("cast", ranks="all", command="c").refusal
    assert refusal == f"{HUMAN} has taken over: take the lease to go on"
    assert stopped_ranks(book) == [0, 1]
    agent.ask("cast", ranks="all", command="p loss")
    agent.ask("lease", action="take")
    agent.ask("cast", ranks="all", command="c")
    assert stopped_ranks(book) == []


def test_what_an_agent_holds_runs_on_when_it_is_gone(rehearse: Play) -> None:
    book, _, agent = both(rehearse)
    agent.ask("lease", action="take")
    agent.vanish()
    book.wait(1)
    assert stopped_ranks(book) == []


def test_what_somebody_has_taken_over_stays(rehearse: Play) -> None:
    book, human, agent = both(rehearse)
    agent.ask("lease", action="take")
    human.ask("pause", threadId=book.thread(0))
    agent.vanish()
    book.wait(1)
    assert stopped_ranks(book) == [0, 1]


def test_an_agent_that_only_looks_holds_nothing(rehearse: Play) -> None:
    book, _, agent = both(rehearse)
    agent.ask("cast", ranks="all", command="p loss")
    agent.vanish()
    book.wait(1)
    assert stopped_ranks(book) == [0, 1]


def test_the_log_has_who_moved_which_ranks(rehearse: Play) -> None:
    book, _, _ = both(rehearse)
    lines = []
    for number, command, arguments in (
        (1, "pause", {"threadId": book.thread(0)}),
        (2, "cast", {"ranks": "0", "command": "p loss"}),
        (2, "cast", {"ranks": "0-1", "command": "n"}),
    ):
        message = {"seq": 99, "type": "request", "command": command, "arguments": arguments}
        said = inputs.ClientSaid(number, decode(json.dumps(message).encode()))
        done = book.engine.receive(said)
        lines += [one.text for one in done if isinstance(one, outputs.Log)]
    assert lines == ["vscode (client 1): pausing", "dap-mux mcp (client 2): stepping 0-1"]


def test_one_agent_drives_at_a_time(rehearse: Play) -> None:
    book, human, agent = both(rehearse)
    other = attached(book, "other", kind=AGENT)
    agent.ask("lease", action="take")
    assert "another agent drives" in other.ask("cast", ranks="0", command="c").refusal
    agent.ask("lease", action="release")
    assert other.ask("lease", action="take").body["holder"] == AGENT
    assert said(human)[-1].endswith("takes over")
