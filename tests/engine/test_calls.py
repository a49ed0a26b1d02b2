"""Ranks that call us: a connection is one call, taken up when it is wanted, and made again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dap_mux.engine import Engine, inputs, outputs
from dap_mux.engine.outputs import Output
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.messages import decode
from tests.support.fake_rank.injected_calls import INJECTED
from tests.support.outputs import singly

RANK = ("job", 0)


class Scene:
    """An engine with one rank that will call, and all that it has asked for."""

    def __init__(self) -> None:
        self.engine = Engine(INJECTED)
        self.calls = 0
        self.asked: list[Output] = []
        self.told: list[dict[str, Any]] = []
        self.feed(inputs.RankKnown(RANK, Endpoint("", 0, announces=True, dials=True)))

    def feed(self, happened: inputs.Input) -> list[Output]:
        """Let it happen; return what is asked for."""
        out = self.engine.receive(happened)
        self.asked += out
        return out

    def call(self, *, ready: bool = True) -> list[outputs.Connect]:
        """The rank calls, or has hung up a call that nobody has taken."""
        self.calls += ready
        endpoint = Endpoint(
            *("127.0.0.1", 40000 + self.calls),
            announces=True,
            dials=True,
            ready=ready,
            incarnation=f"call {self.calls}" if ready else "",
        )
        out = self.feed(inputs.RankKnown(RANK, endpoint))
        return [one for one in out if isinstance(one, outputs.Connect)]

    def attach(self) -> list[Output]:
        """A client attaches and configures."""
        self.feed(inputs.ClientConnected(1))
        out = []
        for seq, command in enumerate(("initialize", "attach", "configurationDone"), 1):
            out += self.ask(seq, command, {"adapterID": "debugpy"} if seq == 1 else {"a": 1})
        return out

    def ask(self, seq: int, command: str, arguments: dict[str, Any]) -> list[Output]:
        """What comes of a client's request."""
        request = {"seq": seq, "type": "request", "command": command, "arguments": arguments}
        return self.feed(inputs.ClientSaid(1, decode(msgspec.json.encode(request))))

    def is_answered(self, link: int, out: Iterable[Output]) -> None:
        """The rank says yes to whatever it is asked, until it is asked nothing more."""
        for output in singly(out):
            if isinstance(output, outputs.ToRank):
                asked = msgspec.json.decode(output.body)
                self.told.append(asked)
                yes = {"type": "response", "request_seq": asked["seq"], "success": True}
                self.says(link, {**yes, "command": asked["command"]})
                if asked["command"] == "attach":
                    self.says(link, {"type": "event", "event": "initialized"})

    def says(self, link: int, message: dict[str, Any]) -> None:
        said = decode(msgspec.json.encode({"seq": 1, **message}))
        self.is_answered(link, self.feed(inputs.LinkSaid(link, said)))

    @property
    def state(self) -> str:
        """As `list` says it."""
        return self.engine.core.mains[RANK].state

    def patience_ends(self) -> None:
        """The last deadline of the length that a rank has for its next call."""
        limit = self.engine.core.settings.redial_timeout
        times = [one for one in self.asked if isinstance(one, outputs.SetDeadline)]
        self.feed(inputs.Deadline([one for one in times if one.seconds == limit][-1].token))


def test_nobody_connects_to_a_rank_that_has_not_called() -> None:
    scene = Scene()
    assert not any(isinstance(one, outputs.Connect) for one in scene.attach())
    assert scene.state == "waiting"
    (wanted,) = scene.call()
    assert wanted.dials


def test_a_call_is_held_until_a_client_comes() -> None:
    scene = Scene()
    assert scene.call() == []
    (wanted,) = (one for one in scene.attach() if isinstance(one, outputs.Connect))
    assert (wanted.dials, wanted.port) == (True, 40001)


def test_it_is_paused_and_resumed_as_its_adapter_would_do_it() -> None:
    """debugpy refuses a thread's number that it has not told, and that is all ours are at first."""
    scene = Scene()
    scene.attach()
    (wanted,) = scene.call()
    scene.is_answered(wanted.link, scene.feed(inputs.LinkUp(wanted.link)))
    assert scene.state == "running"
    row = scene.engine.view.id_of(RANK)
    scene.is_answered(wanted.link, scene.ask(4, "pause", {"threadId": row}))
    assert scene.state == "pausing"
    stop = {"reason": "pause", "threadId": 1, "allThreadsStopped": True}
    scene.says(wanted.link, {"type": "event", "event": "stopped", "body": stop})
    assert scene.state == "stopped"
    scene.is_answered(wanted.link, scene.ask(5, "continue", {"threadId": row}))
    told = {one["command"]: one["arguments"] for one in scene.told}
    assert told["pause"] == told["continue"] == {"threadId": "*"}


def test_a_call_that_broke_is_not_tried_again_but_waited_for() -> None:
    scene = Scene()
    scene.attach()
    (first,) = scene.call()
    scene.feed(inputs.LinkUp(first.link))
    out = scene.feed(inputs.LinkDown(first.link, "the rank closed the connection"))
    assert not any(isinstance(one, outputs.Connect) for one in out)
    (second,) = scene.call()
    assert second.link != first.link


def test_a_rank_that_does_not_call_again_has_ended_and_is_back_when_it_does() -> None:
    scene = Scene()
    scene.attach()
    other = Endpoint("", 0, announces=True, dials=True)
    scene.feed(inputs.RankKnown(("job", 1), other))  # or the session would be over
    (first,) = scene.call()
    scene.feed(inputs.LinkDown(first.link, "gone"))
    scene.patience_ends()
    assert scene.state == "exited"
    (again,) = scene.call()
    assert again.dials


def test_who_hangs_up_before_anybody_came_has_ended_unless_it_calls_again() -> None:
    scene = Scene()
    other = Endpoint("", 0, announces=True, dials=True)
    scene.feed(inputs.RankKnown(("job", 1), other))
    scene.call()
    scene.call(ready=False)
    scene.call()
    scene.patience_ends()
    assert scene.state == "waiting", "it has called in time: the deadline is an old one"
    scene.call(ready=False)
    scene.patience_ends()
    assert scene.state == "exited"
